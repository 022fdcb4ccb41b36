import { decodeBatch } from '../core/batch.js';
import { summaryBody } from '../http/routes/dead-letters.js';
import { printable } from './printable.js';
import type { DeadLetterSummary, StoredDeadLetter } from '../core/ports/dead-letter-repository.js';

const PURCHASES_SHOWN = 20;

export function printHeading(): void {
  console.log(line(['letter', 'parked at', 'state', 'reason', 'sale', 'batch', 'replays', 'note']));
}

export function printSummary(deadLetter: DeadLetterSummary): void {
  const { deadLetterId, parkedAtMs, state, reason, saleId, batchId, replays, note } = deadLetter;
  const when = new Date(parkedAtMs).toISOString();
  const cells = [
    deadLetterId,
    when,
    state,
    reason,
    saleId ?? '-',
    batchId ?? '-',
    String(replays),
    note ?? deadLetter.detail,
  ];
  console.log(line(cells.map(printable)));
}

export function printDeadLetter(deadLetter: StoredDeadLetter): void {
  const { body, ...summary } = deadLetter;
  for (const [name, value] of Object.entries(summaryBody(summary))) {
    console.log(`${name.padEnd(16)} ${printable(String(value ?? '-'))}`);
  }
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded') {
    console.log(`${'body'.padEnd(16)} no batch: ${decoded.detail}\n${printable(body)}`);
    return;
  }
  const { purchases, bucket, epoch, createdAtMs } = decoded.batch;
  console.log(`${'bucket, epoch'.padEnd(16)} ${bucket}, ${epoch}`);
  console.log(`${'formed at'.padEnd(16)} ${new Date(createdAtMs).toISOString()}`);
  console.log(`${'purchases'.padEnd(16)} ${purchases.length}`);
  for (const { userId, requestId, quantity } of purchases.slice(0, PURCHASES_SHOWN)) {
    console.log(`  buyer ${userId}  request ${requestId}  quantity ${quantity}`);
  }
  if (purchases.length > PURCHASES_SHOWN) console.log(`  … all of them with --json`);
}

const WIDTHS = [8, 24, 9, 17, 18, 22, 7];
const line = (cells: readonly string[]): string =>
  cells
    .map((cell, index) => cell.padEnd(WIDTHS[index] ?? 0))
    .join('  ')
    .trimEnd();
