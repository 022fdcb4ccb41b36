import { assert, Bug } from '../core/errors.js';
import type { BucketTransfers, OutgoingTransfer } from '../core/bucket.js';
import type { TransferredIn, BucketState, TransferredOut, TransferStore } from '../core/ports/transfer-store.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { bucketKeys } from './keys.js';
import { asList } from './replies.js';

const END_WORDS = ['unavailable', 'already_ended', 'ended'] as const;

export function createTransferStore({ run }: RedisConnection): TransferStore {
  return {
    async read(ref, buckets): Promise<BucketState | null> {
      const { stock, sale, transfers } = bucketKeys(ref);
      return parseState(
        asList(
          await asOperationalError('read transfers', () => run('read-transfers', [stock, sale, transfers], [buckets])),
        ),
      );
    },

    async transferOut(from, to, epoch, least): Promise<TransferredOut> {
      const { stock, sale, transfers } = bucketKeys(from);
      return parseTransferredOut(
        asList(
          await asOperationalError('transfer-out', () =>
            run('transfer-out', [stock, sale, transfers], [to, epoch, least]),
          ),
        ),
      );
    },

    async transferIn(saleId, { from, to, seq, units }, epoch): Promise<TransferredIn> {
      const { stock, sale, transfers } = bucketKeys({ saleId, bucket: to });
      const args = [from, epoch, seq, units];
      return parseTransferredIn(
        asList(await asOperationalError('transfer-in', () => run('transfer-in', [stock, sale, transfers], args))),
      );
    },

    async endTransfer(saleId, { from, to, seq }, epoch): Promise<(typeof END_WORDS)[number]> {
      const { sale, transfers } = bucketKeys({ saleId, bucket: from });
      const reply = await asOperationalError('transfer-end', () =>
        run('transfer-end', [sale, transfers], [to, epoch, seq]),
      );
      const word = END_WORDS.find((known) => known === reply);
      if (word === undefined) throw new Bug(`transfer-end returned the unknown word ${String(reply)}`);
      return word;
    },
  };
}

/** Parses two values per bucket of the sale, in order: the open or closed transfer to it, and the last one from it. */
function parseState([certain, epoch, unitsLeft, nowMs, ...transfers]: readonly unknown[]): BucketState | null {
  if (certain !== 1) return null;
  const outgoing: OutgoingTransfer[] = [];
  const incoming = new Map<number, number>();
  for (let other = 0; 2 * other < transfers.length; other++) {
    const [out, lastIn] = [String(transfers[2 * other]), Number(transfers[2 * other + 1])];
    if (out !== '') outgoing.push(parseTransfer(other, out, Number(nowMs)));
    if (lastIn > 0) incoming.set(other, lastIn);
  }
  return { epoch: Number(epoch), unitsLeft: Number(unitsLeft), outgoing, incoming };
}

function parseTransferredOut([word, seq, units]: readonly unknown[]): TransferredOut {
  switch (word) {
    case 'transferred':
      assert(Number(units) > 0, `a transfer of ${String(units)} units`);
      return { outcome: word, seq: Number(seq), units: Number(units) };
    case 'empty':
    case 'unavailable':
      return { outcome: word };
    default:
      throw new Bug(`transfer-out returned the unknown word ${String(word)}`);
  }
}

function parseTransferredIn([word, unitsLeft]: readonly unknown[]): TransferredIn {
  switch (word) {
    case 'received':
    case 'already_received':
      return { outcome: word, unitsLeft: Number(unitsLeft) };
    case 'unavailable':
      return { outcome: word };
    default:
      throw new Bug(`transfer-in returned the unknown word ${String(word)}`);
  }
}

/** @param text `seq:units:open|closed:time in ms`, as in the `moves` hash */
function parseTransfer(to: number, text: string, nowMs: number): OutgoingTransfer {
  const [, seq, units, kind, atMs] = /^(\d+):(\d+):(open|closed):(\d+)$/.exec(text) ?? [];
  if (kind === undefined) throw new Bug(`the transfer ${text} cannot be read`);
  const ageMs = Math.max(0, nowMs - Number(atMs));
  return { to, seq: Number(seq), units: Number(units), isOpen: kind === 'open', ageMs };
}

/** @param fields a whole `moves` hash: at most two fields per bucket of the sale */
export function parseTransfers(fields: Readonly<Record<string, string>>, nowMs: number): BucketTransfers {
  const outgoing: OutgoingTransfer[] = [];
  const incoming = new Map<number, number>();
  for (const [field, text] of Object.entries(fields)) {
    const [kind, bucket] = field.split(':');
    if (kind === 'lent') outgoing.push(parseTransfer(Number(bucket), text, nowMs));
    else incoming.set(Number(bucket), Number(text));
  }
  outgoing.sort((a, b) => a.to - b.to);
  return { outgoing, incoming: new Map([...incoming].sort(([a], [b]) => a - b)) };
}
