import { Bug } from '../core/errors.js';
import type { OutgoingTransfer } from '../core/unit-transfer.js';
import type { TransferredIn, BucketState, TransferredOut, TransferStore } from '../core/ports/transfer-store.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { bucketKeys } from './keys.js';
import { parseTransfer } from './moves.js';
import { asList } from './replies.js';

const CONFIRM_WORDS = ['unavailable', 'already_ended', 'ended'] as const;

/** Moves units between buckets. */
export function createTransferStore({ run }: Pick<RedisConnection, 'run'>): TransferStore {
  return {
    async read(ref, buckets): Promise<BucketState | null> {
      const { stock, sale, moves } = bucketKeys(ref);
      return readLook(
        asList(await asOperationalError('survey', () => run('read-transfers', [stock, sale, moves], [buckets]))),
      );
    },

    async transferOut(from, to, epoch, least): Promise<TransferredOut> {
      const { stock, sale, moves } = bucketKeys(from);
      return readLend(
        asList(await asOperationalError('lend', () => run('transfer-out', [stock, sale, moves], [to, epoch, least]))),
      );
    },

    async transferIn(saleId, { from, to, seq, units }, epoch): Promise<TransferredIn> {
      const { stock, sale, moves } = bucketKeys({ saleId, bucket: to });
      const args = [from, epoch, seq, units];
      return readBorrow(
        asList(await asOperationalError('borrow', () => run('transfer-in', [stock, sale, moves], args))),
      );
    },

    async endTransfer(saleId, { from, to, seq }, epoch): Promise<(typeof CONFIRM_WORDS)[number]> {
      const { sale, moves } = bucketKeys({ saleId, bucket: from });
      const said = await asOperationalError('confirm', () => run('transfer-end', [sale, moves], [to, epoch, seq]));
      const word = CONFIRM_WORDS.find((known) => known === said);
      if (word === undefined) throw new Bug(`confirm answered the word ${String(said)}`);
      return word;
    },
  };
}

/** A bucket knows itself only by its place in the list, which is how it is asked for. */
function readLook([certain, epoch, unitsLeft, nowMs, ...moves]: readonly unknown[]): BucketState | null {
  if (certain !== 1) return null;
  const outgoing: OutgoingTransfer[] = [];
  const incoming = new Map<number, number>();
  for (let other = 0; 2 * other < moves.length; other++) {
    const [left, came] = [String(moves[2 * other]), Number(moves[2 * other + 1])];
    if (left !== '') outgoing.push(parseTransfer(other, left, Number(nowMs)));
    if (came > 0) incoming.set(other, came);
  }
  return { epoch: Number(epoch), unitsLeft: Number(unitsLeft), outgoing, incoming };
}

function readLend([word, seq, units]: readonly unknown[]): TransferredOut {
  switch (word) {
    case 'transferred':
      return { outcome: word, seq: Number(seq), units: Number(units) };
    case 'empty':
    case 'unavailable':
      return { outcome: word };
    default:
      throw new Bug(`lend answered the word ${String(word)}`);
  }
}

function readBorrow([word, unitsLeft]: readonly unknown[]): TransferredIn {
  switch (word) {
    case 'received':
    case 'already_received':
      return { outcome: word, unitsLeft: Number(unitsLeft) };
    case 'unavailable':
      return { outcome: word };
    default:
      throw new Bug(`borrow answered the word ${String(word)}`);
  }
}
