import type { NewRevocation, Revocation, RevocationRepository } from '../core/ports/revocations.js';
import { actorColumn, insertAudit } from './audit-log.js';
import { MysqlError } from './errors.js';
import { execute, knex, msAgo, select } from './knex.js';
import type { MysqlPool, Transaction } from './pool.js';
import type { RevocationRow } from './tables.js';

/** Longer than any configurable lifetime of a token (JWT_LIFE_MAX_MS: 365 days). */
const KEPT_MS = 400 * 86_400_000;
const FORGOTTEN_AT_ONCE = 100;
/** Number of attempts to get a number. If two processes take the same number at once, the loser takes the next one. */
const TRIES = 10;

const COLUMNS = ['number', 'user_id', 'issued_before', 'token_id', 'actor', 'created_at'] as const;
const revocations = () => knex('revocations').select(...COLUMNS);
/** Written as SQL, because each api asks twice a second, even when idle. */
const AFTER = `SELECT ${COLUMNS.join(', ')} FROM revocations
  WHERE number > ? AND created_at > UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND ORDER BY number LIMIT ?`;

/** Revocations of tokens, numbered without a gap. */
export function createRevocationRepository(pool: MysqlPool): RevocationRepository {
  return {
    async add(revocation, actor) {
      for (let tried = 1; ; tried++) {
        try {
          return await pool.transaction((tx) => insert(tx, revocation, actor));
        } catch (error) {
          if (!(error instanceof MysqlError) || error.kind !== 'duplicate' || tried === TRIES) throw error;
        }
      }
    },
    async after(number, lifeMs, max) {
      return (await pool.query<RevocationRow>(AFTER, [number, lifeMs * 1000, max])).map(revocationOf);
    },
    async newest(max, before) {
      const found = before === undefined ? revocations() : revocations().where('number', '<', before);
      return (await select(pool, found.orderBy('number', 'desc').limit(max))).map(revocationOf);
    },
  };
}

/** Takes the next number after the newest committed one, so a reader of a number sees all earlier ones. */
async function insert(tx: Transaction, revocation: NewRevocation, actor: string): Promise<Revocation> {
  const [newest] = await select(tx, knex('revocations').select('number').orderBy('number', 'desc').limit(1));
  const number = (newest?.number ?? 0) + 1;
  const common = { number, actor: actorColumn(actor) };
  const audit = { actor, action: 'tokens.revoked', subject: `revocation:${number}`, before: null };
  if ('tokenId' in revocation) {
    const { tokenId } = revocation;
    await execute(tx, knex('revocations').insert({ ...common, token_id: tokenId }));
    await insertAudit(tx, { ...audit, after: { tokenId } });
  } else {
    const { userId, issuedBeforeMs } = revocation;
    const issuedBefore = new Date(issuedBeforeMs);
    await execute(tx, knex('revocations').insert({ ...common, user_id: userId, issued_before: issuedBefore }));
    await insertAudit(tx, { ...audit, after: { userId, issuedBefore } });
  }
  const old = knex('revocations').where('created_at', '<', msAgo(KEPT_MS)).where('number', '<', number);
  await execute(tx, old.orderBy('number').limit(FORGOTTEN_AT_ONCE).delete());
  const [stored] = await select(tx, revocations().where({ number }));
  return revocationOf(stored as RevocationRow);
}

function revocationOf({ number, user_id, issued_before, token_id, actor, created_at }: RevocationRow): Revocation {
  const about =
    token_id === null
      ? { userId: user_id as string, issuedBeforeMs: (issued_before as Date).getTime() }
      : { tokenId: token_id };
  return { ...about, number, actor, atMs: created_at.getTime() };
}
