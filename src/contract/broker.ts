import { z } from 'zod';
import { count, text, type BodyOf } from './fields.js';

const ms = z.number().min(0);

const down = z
  .array(z.object({ name: text, address: text, down: text }))
  .meta({ description: 'brokers that do not answer, whose data is missing' });
const listOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), more: z.boolean(), down });

/** If `down` says why a broker does not answer, nothing else is known about it. The rates cover the last ten seconds. */
const broker = z
  .object({
    name: text,
    address: text,
    down: text.nullable(),
    version: text,
    putPerSecond: z.number(),
    getPerSecond: z.number(),
    diskUsed: z.number(),
  })
  .meta({ id: 'Broker' });
/** A consumer group and one topic that it reads. `lag` counts messages that no consumer has received. */
const group = z
  .object({ group: text, topic: text, lag: count, oldestMs: ms.nullable(), clients: count })
  .meta({ id: 'ConsumerGroup' });
/** `type` is empty if the broker does not say. `lastStoredAtMs` is null if no message is kept. */
const topic = z
  .object({ topic: text, type: text, queues: count, kept: count, lastStoredAtMs: count.nullable() })
  .meta({ id: 'Topic' });

/** A half message without an answer. `topic` is its topic once it is committed, `key` the id of one of our batches. */
const halfFields = {
  broker: text,
  topic: text,
  key: text,
  messageId: text,
  ageMs: ms,
  checks: count,
  saleId: text.nullable(),
  purchases: count.nullable(),
};
const half = z.object(halfFields).meta({ id: 'HalfMessage' });
/** A half message that the broker has given up. `resumedAtMs`: it was open again by then. `offsetId` puts it back. */
const discardedHalf = z
  .object({ ...halfFields, discardedAtMs: count, resumedAtMs: count.nullable(), offsetId: text })
  .meta({ id: 'DiscardedHalf' });

const client = { group: text, clientId: text, address: text, language: text };
const producer = z.object(client).meta({ id: 'Producer' });
const consumer = z.object(client).meta({ id: 'Consumer' });

const message = z
  .object({
    broker: text,
    topic: text,
    queueId: count,
    queueOffset: count,
    physicalOffset: count,
    offsetId: text,
    bornAtMs: count,
    storedAtMs: count,
    deliveries: count,
    body: text,
    properties: z.record(text, text),
  })
  .meta({ id: 'Message' });

export const mqStatus = z
  .object({
    brokers: z.array(broker),
    groups: z.array(group),
    deadLetters: z.array(z.object({ topic: text, kept: count })),
    halves: z.object({ open: count, oldestMs: ms.nullable(), checksMost: count, more: z.boolean() }),
    discarded: count,
    producers: z.record(text, count),
  })
  .meta({ id: 'MqStatus' });
export const groups = listOf(group);
export const topics = listOf(topic);
export const halves = listOf(half);
export const discardedHalves = listOf(discardedHalf);
export const producers = listOf(producer);
export const consumers = listOf(consumer);
export const messages = listOf(message);
export const resumedHalves = z.object({ resumed: count });

export type Broker = BodyOf<typeof broker>;
export type ConsumerGroup = BodyOf<typeof group>;
export type MqStatus = BodyOf<typeof mqStatus>;
export type Topic = BodyOf<typeof topic>;
export type HalfMessage = BodyOf<typeof half>;
export type DiscardedHalf = BodyOf<typeof discardedHalf>;
export type BrokerClient = BodyOf<typeof producer>;
export type Message = BodyOf<typeof message>;
/** A list collected from the brokers that answer. */
export interface MqList<T> {
  readonly items: readonly T[];
  readonly more: boolean;
  readonly down: BodyOf<typeof down>;
}
