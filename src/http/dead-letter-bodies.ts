import { decodeBatch, sealBatch } from '../core/batch.js';
import type { DeadLetterSummary, StoredDeadLetter } from '../core/ports/dead-letter-repository.js';

/** A letter as a program reads it: times in ISO 8601. */
export function summaryBody({ parkedAtMs, replayStartedAtMs, ...deadLetter }: DeadLetterSummary): object {
  const replayStartedAt = replayStartedAtMs === null ? null : new Date(replayStartedAtMs).toISOString();
  return { ...deadLetter, parkedAt: new Date(parkedAtMs).toISOString(), replayStartedAt };
}

/** The same with its body: as it is, and decoded where it is a batch, without fields that no batch has. */
export function deadLetterBody({ body, ...summary }: StoredDeadLetter): object {
  const decoded = decodeBatch(body);
  const batch = decoded.outcome === 'decoded' ? (JSON.parse(sealBatch(decoded.batch).body) as object) : null;
  return { ...summaryBody(summary), batch, body };
}
