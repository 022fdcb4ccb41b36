import type { Line, LineStore, LineTerms, PlaceWord, SteerWord } from '../core/ports/line-store.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { roomKeys } from './keys.js';
import { asList } from './replies.js';

export function createLineStore({ redis, run }: RedisConnection): LineStore {
  return {
    async read(terms, known) {
      const keys = roomKeys(terms.saleId);
      const text = await asOperationalError('read a line', () => run('read-line', keys, lineArguments(terms, known)));
      return lineIn(text);
    },

    async take(terms, known, { userId, priority, lot, ticket, waitingMax, passMs }) {
      const place = [ticket?.epoch ?? 0, ticket?.number ?? 0];
      const args = [userId, priority, lot, ...place, waitingMax, passMs, ticket?.admitted ?? 0];
      const reply = await asOperationalError('take a place', () =>
        run('take-place', roomKeys(terms.saleId), [...lineArguments(terms, known), ...args]),
      );
      const [word, ownClass, number, untilMs, line] = asList(reply);
      return {
        word: word as PlaceWord,
        priority: Number(ownClass),
        number: Number(number),
        untilMs: Number(untilMs),
        line: lineIn(line),
      };
    },

    async look(saleId) {
      const [key] = roomKeys(saleId);
      const text = await asOperationalError('look at a line', () => redis.get(key));
      return text === null ? null : lineIn(text);
    },

    async steer(saleId, admit) {
      const places = admit === 'all_out' ? -1 : admit;
      const reply = await asOperationalError('steer a line', () => run('steer-line', roomKeys(saleId), [places]));
      const [word, buyers] = asList(reply);
      return { word: word as SteerWord, buyers: Number(buyers) };
    },
  };
}

const lineArguments = ({ opensAtMs, perSecond, turnMs, byLot }: LineTerms, known: Line | null) => [
  opensAtMs,
  perSecond,
  turnMs,
  known === null ? '' : JSON.stringify(known),
  byLot ? 1 : 0,
];

const lineIn = (text: unknown): Line => JSON.parse(String(text)) as Line;
