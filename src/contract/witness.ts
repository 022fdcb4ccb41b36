import { z } from 'zod';
import { WITNESS_KINDS, WITNESS_STATES } from '../core/ports/witness.js';
import { rowId, text, time, type BodyOf } from './fields.js';

/** A change of orders, payments, sales or the outbox that no program makes. */
export const witnessFinding = z
  .object({
    findingId: rowId,
    kind: z.enum(WITNESS_KINDS),
    subject: text.meta({ description: 'table and key of the row' }),
    orderId: text.nullable(),
    saleId: text.nullable(),
    detail: text,
    place: text.meta({ description: 'the transaction in the binary log: its GTID, or its end as file/offset@server' }),
    committedAt: time,
    state: z.enum(WITNESS_STATES),
  })
  .meta({ id: 'WitnessFinding' });
export const witnessPage = z.object({ findings: z.array(witnessFinding), next: text.nullable() });

export type WitnessFinding = BodyOf<typeof witnessFinding>;
