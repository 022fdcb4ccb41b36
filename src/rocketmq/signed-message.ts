import type { MessageOptions } from 'rocketmq-client-nodejs';
import { type MessageSignatures, SIGNATURE_PROPERTY } from '../core/message-signatures.js';
import type { ConnectionOptions } from './client-options.js';

export interface ProducerOptions extends ConnectionOptions {
  readonly signatures: MessageSignatures;
}

/** Signs the body for its topic. @param properties identify an unreadable dead letter: it does not name its origin */
export const signedMessage = (
  topic: string,
  body: string,
  properties: Readonly<Record<string, string>>,
  signatures: MessageSignatures,
): Pick<MessageOptions, 'body' | 'properties'> => ({
  properties: new Map([
    ['topic', topic],
    ...Object.entries(properties),
    [SIGNATURE_PROPERTY, signatures.sign(topic, body)],
  ]),
  body: Buffer.from(body, 'utf8'),
});
