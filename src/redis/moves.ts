import { Bug } from '../core/errors.js';
import type { BucketTransfers, OutgoingTransfer } from '../core/unit-transfer.js';

/** `seq:units:open|closed:time in ms`, as the `moves` hash keeps it. */
export function parseTransfer(to: number, text: string, nowMs: number): OutgoingTransfer {
  const [, seq, units, kind, atMs] = /^(\d+):(\d+):(open|closed):(\d+)$/.exec(text) ?? [];
  if (kind === undefined) throw new Bug(`a transfer reads ${text}`);
  const ageMs = Math.max(0, nowMs - Number(atMs));
  return { to, seq: Number(seq), units: Number(units), isOpen: kind === 'open', ageMs };
}

/** A whole `moves` hash, which has at most two fields per bucket of the sale. */
export function readMoves(fields: Readonly<Record<string, string>>, nowMs: number): BucketTransfers {
  const outgoing: OutgoingTransfer[] = [];
  const borrowed = new Map<number, number>();
  for (const [field, text] of Object.entries(fields)) {
    const [kind, bucket] = field.split(':');
    if (kind === 'lent') outgoing.push(parseTransfer(Number(bucket), text, nowMs));
    else borrowed.set(Number(bucket), Number(text));
  }
  outgoing.sort((a, b) => a.to - b.to);
  return { outgoing, incoming: new Map([...borrowed].sort(([a], [b]) => a - b)) };
}
