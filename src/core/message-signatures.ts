import { sameText, type HmacKey, type Keyring } from './hmac.js';
import { isId } from './ids.js';
import type { Delivery, DeliverySource, OpenHalf } from './ports/channels.js';
import type { DeadLetterRepository } from './ports/dead-letter-repository.js';
import type { Log } from './ports/log.js';
import { redeliveryDelayMs } from './back-off.js';
import { OperationalError } from './errors.js';
import { createHash } from 'node:crypto';

/** The property of a message that carries its signature: `<keyId>.<HMAC-SHA-256 in base64url>`. */
export const SIGNATURE_PROPERTY = 'signature';

/** Why a message is not one of ours. */
export const FORGERIES = ['unsigned', 'unknown_key', 'wrong_signature'] as const;
type Forgery = (typeof FORGERIES)[number];

/** `unsigned_accepted`: it has no signature, and those are let in while programs are being updated. */
export type SignatureVerdict = 'signed' | 'unsigned_accepted' | Forgery;

/** Whether messages without a signature are let in. One with a wrong signature never is. */
export type UnsignedMessages = 'refuse' | 'accept';

/**
 * Signs and checks bodies of messages. Whoever reaches the broker can send what they like: the signature says that a program
 * with a key of ours wrote the body, for this topic. It says nothing of when, so an old message that is sent again is valid
 * still, and does what a second delivery does.
 */
export class MessageSignatures {
  readonly #keys: Keyring;
  readonly #firstId: string;
  readonly #first: HmacKey;
  readonly #unsigned: UnsignedMessages;

  /** @param keys at least one; the first signs, all are accepted, so that keys can be changed one program after the other */
  constructor(keys: Keyring, unsigned: UnsignedMessages = 'refuse') {
    const [first] = keys;
    if (first === undefined) throw new RangeError('messages cannot be signed without a key');
    this.#keys = keys;
    [this.#firstId, this.#first] = first;
    this.#unsigned = unsigned;
  }

  /** @param topic that it is published to */
  sign(topic: string, body: string): string {
    return `${this.#firstId}.${macOf(this.#first, topic, body)}`;
  }

  /**
   * @param topic that it was published to, never one that the message itself names
   * @param signature its property; undefined: it has none
   */
  check(topic: string, body: string, signature: string | undefined): SignatureVerdict {
    if (signature === undefined) return this.#unsigned === 'accept' ? 'unsigned_accepted' : 'unsigned';
    const key = this.#keys.get(keyIdOf(signature));
    if (key === undefined) return 'unknown_key';
    const mac = signature.slice(signature.indexOf('.') + 1);
    return sameText(mac, macOf(key, topic, body)) ? 'signed' : 'wrong_signature';
  }
}

/** A topic has no line break, so a body can't take over a part of it. */
const macOf = (key: HmacKey, topic: string, body: string): string => key.sign(`${topic}\n${body}`);

const keyIdOf = (signature: string): string => signature.slice(0, Math.max(0, signature.indexOf('.')));

/** Counts messages that were not signed by us. */
export interface SignatureMetrics {
  forged(topic: string, forgery: Forgery): void;
  /** Let in without a signature. */
  unsignedAccepted(topic: string): void;
}

/** Where a message was found: the consumer group, and the topic that its messages are published to. */
export interface MessageOrigin {
  readonly group: string;
  readonly topic: string;
}

export interface SignedMessagesPorts {
  readonly signatures: MessageSignatures;
  readonly deadLetters: Pick<DeadLetterRepository, 'park'>;
  readonly metrics: SignatureMetrics;
  readonly log: Log;
}

/** Keeps out what nobody of ours has signed: it is parked as `forged`, and no consumer sees it. */
export class SignedMessages {
  readonly #ports: SignedMessagesPorts;

  constructor(ports: SignedMessagesPorts) {
    this.#ports = ports;
  }

  /** The same, and what is forged is parked there. */
  parkedBy(deadLetters: SignedMessagesPorts['deadLetters']): SignedMessages {
    return new SignedMessages({ ...this.#ports, deadLetters });
  }

  /**
   * @param message a delivery, or a half message that is checked back
   * @returns whether it is ours; if not, it is parked
   * @throws OperationalError mysql: it is not ours, and could not be parked
   */
  async admits(
    message: OpenHalf & Partial<Pick<Delivery, 'attempt'>>,
    { group, topic }: MessageOrigin,
  ): Promise<boolean> {
    const { signatures, deadLetters, metrics, log } = this.#ports;
    const { messageId, body, properties, attempt = 1 } = message;
    const signature = properties.get(SIGNATURE_PROPERTY);
    const verdict = signatures.check(topic, body, signature);
    if (verdict === 'signed') return true;
    if (verdict === 'unsigned_accepted') {
      metrics.unsignedAccepted(topic);
      return true;
    }
    metrics.forged(topic, verdict);
    const shownId = messageId.slice(0, MESSAGE_ID_SHOWN);
    // Nothing that it says is believed. It names no sale and no batch, for which a repair, reconcile or an operator would act;
    // and no message id, which its sender chose: a true message of the same id could not be parked any more.
    await deadLetters.park({
      messageId: `forged-${createHash('sha256').update(`${topic}\n${signature}\n${body}`).digest('hex')}`,
      group,
      originTopic: topic,
      saleId: null,
      batchId: null,
      body: body.slice(0, BODY_KEPT),
      reason: 'forged',
      detail: `${describe(verdict, signature)}; ${body.length} characters, message id ${shownId}`,
      attempts: attempt,
    });
    log.error({ group, topic, forgery: verdict, messageId: shownId }, 'forged message parked');
    return false;
  }

  /** The same source without what is forged. Where all of one receive is forged it receives again. */
  of(source: DeliverySource, origin: MessageOrigin): DeliverySource {
    return {
      receive: async (max) => {
        for (;;) {
          const received = await source.receive(max);
          const admitted = await Promise.all(received.map((delivery) => this.#take(delivery, origin)));
          const deliveries = received.filter((_, index) => admitted[index]);
          if (deliveries.length > 0 || received.length === 0) return deliveries;
        }
      },
    };
  }

  /** Row first, then the ack: a death in between parks the same row again, which changes nothing. */
  async #take(delivery: Delivery, origin: MessageOrigin): Promise<boolean> {
    try {
      if (await this.admits(delivery, origin)) return true;
      await delivery.ack();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#ports.log.warn({ ...origin, error: error.message }, 'could not park a forged message, it comes again');
      await delivery.retryAfter(redeliveryDelayMs(delivery.attempt));
    }
    return false;
  }
}

const MESSAGE_ID_SHOWN = 128;
/** For a person; the broker takes 4 MiB, and who sends one sends many. */
const BODY_KEPT = 16_384;

function describe(forgery: Forgery, signature = ''): string {
  const keyId = keyIdOf(signature);
  const key = isId(keyId) ? `the key ${keyId}` : 'a key without a name';
  switch (forgery) {
    case 'unsigned':
      return 'it carries no signature';
    case 'unknown_key':
      return `it names ${key}, which is not in MESSAGE_KEYS here`;
    case 'wrong_signature':
      return `its signature is not that of ${key} for this body and topic`;
  }
}
