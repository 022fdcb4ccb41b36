import type { MessageOptions } from 'rocketmq-client-nodejs';
import type { Batch } from '../core/batch.js';

/**
 * A batch as a message: key = batchId, so that a person finds it with `queryMsgByKey`. The properties repeat topic,
 * saleId and batchId because a dead letter does not say where it came from, and a body that cannot be decoded neither.
 */
export function batchMessage(topic: string, batch: Batch): MessageOptions {
  return {
    topic,
    keys: [batch.batchId],
    properties: new Map([
      ['topic', topic],
      ['saleId', batch.saleId],
      ['batchId', batch.batchId],
      ['epoch', String(batch.epoch)],
    ]),
    body: Buffer.from(batch.body, 'utf8'),
  };
}
