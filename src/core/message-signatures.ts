import { sameText, type HmacKey, type Keyring } from './hmac.js';
import { isId } from './ids.js';
import type { Delivery, DeliverySource, OpenHalf } from './ports/channels.js';
import type { DeadLetterParking } from './ports/dead-letters.js';
import type { Log } from './ports/log.js';
import { redeliveryDelayMs } from './back-off.js';
import { OperationalError } from './errors.js';
import { createHash } from 'node:crypto';

/** The property of a message that carries its signature: `<keyId>.<HMAC-SHA-256 in base64url>`. */
export const SIGNATURE_PROPERTY = 'signature';

/** Reasons why a message is not ours. */
export const FORGERIES = ['unsigned', 'unknown_key', 'wrong_signature'] as const;
type Forgery = (typeof FORGERIES)[number];

/** `unsigned_accepted`: no signature, which is accepted while programs are being updated. */
export type SignatureVerdict = 'signed' | 'unsigned_accepted' | Forgery;

/** Whether messages without a signature are accepted. A wrong signature is never accepted. */
export type UnsignedMessages = 'refuse' | 'accept';

/**
 * Any program that reaches the broker can send any message. The signature proves that a program with our key wrote the
 * body, for this topic, but not when: an old message sent again is valid, and acts like a second delivery.
 */
export class MessageSignatures {
  readonly #keys: Keyring;
  readonly #firstId: string;
  readonly #first: HmacKey;
  readonly #unsigned: UnsignedMessages;

  /** @param keys the first signs, all are accepted, so keys can be changed one program after the other */
  constructor(keys: Keyring, unsigned: UnsignedMessages = 'refuse') {
    const [first] = keys;
    if (first === undefined) throw new RangeError('messages cannot be signed without a key');
    this.#keys = keys;
    [this.#firstId, this.#first] = first;
    this.#unsigned = unsigned;
  }

  /** @param topic to which the message is sent */
  sign(topic: string, body: string): string {
    return `${this.#firstId}.${macOf(this.#first, topic, body)}`;
  }

  /**
   * @param topic of publication, never a topic that the message itself names
   * @param signature property of the message, if any
   */
  check(topic: string, body: string, signature: string | undefined): SignatureVerdict {
    if (signature === undefined) return this.#unsigned === 'accept' ? 'unsigned_accepted' : 'unsigned';
    const key = this.#keys.get(keyIdOf(signature));
    if (key === undefined) return 'unknown_key';
    const mac = signature.slice(signature.indexOf('.') + 1);
    return sameText(mac, macOf(key, topic, body)) ? 'signed' : 'wrong_signature';
  }
}

/** The line break separates topic and body: no topic contains one, so text cannot move from the body to the topic. */
const macOf = (key: HmacKey, topic: string, body: string): string => key.sign(`${topic}\n${body}`);

const keyIdOf = (signature: string): string => signature.slice(0, Math.max(0, signature.indexOf('.')));

export interface SignatureMetrics {
  forged(topic: string, forgery: Forgery): void;
  unsignedAccepted(topic: string): void;
}

/** The consumer group, and the topic of publication. */
export interface MessageOrigin {
  readonly group: string;
  readonly topic: string;
}

export interface SignedMessagesPorts {
  readonly signatures: MessageSignatures;
  readonly deadLetters: DeadLetterParking;
  readonly metrics: SignatureMetrics;
  readonly log: Log;
}

/** Keeps out messages without our signature. It parks each of them as `forged`, and no consumer sees it. */
export class SignedMessages {
  readonly #ports: SignedMessagesPorts;

  constructor(ports: SignedMessagesPorts) {
    this.#ports = ports;
  }

  /** Returns the same filter, except that it parks forged messages in `deadLetters`. */
  parkedBy(deadLetters: SignedMessagesPorts['deadLetters']): SignedMessages {
    return new SignedMessages({ ...this.#ports, deadLetters });
  }

  /**
   * Parks a message that is not ours.
   * @param message a delivery, or a half message that is checked back
   * @returns whether it is ours
   * @throws OperationalError mysql if a forged message could not be parked
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
    // Trusts nothing in a forged message. The dead letter names no sale or batch, on which a repair, reconcile or an
    // operator would act, and not the sender's message id, because a genuine message with that id could then not be
    // parked.
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
    log.error({ group, topic, forgery: verdict, messageId: shownId }, 'parked a forged message');
    return false;
  }

  /** Returns the source without forged messages. If all received messages are forged, receives again. */
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

  /** Parks a forged message, then acks it. A crash in between parks the same row again, which changes nothing. */
  async #take(delivery: Delivery, origin: MessageOrigin): Promise<boolean> {
    try {
      if (await this.admits(delivery, origin)) return true;
      await delivery.ack();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#ports.log.warn(
        { ...origin, error: error.message },
        'could not park a forged message; the broker delivers it again',
      );
      await delivery.retryAfter(redeliveryDelayMs(delivery.attempt));
    }
    return false;
  }
}

const MESSAGE_ID_SHOWN = 128;
/** Number of characters kept of a forged body, for people. The broker accepts 4 MiB, and a forger may send many. */
const BODY_KEPT = 16_384;

function describe(forgery: Forgery, signature = ''): string {
  const keyId = keyIdOf(signature);
  const key = isId(keyId) ? `the key ${keyId}` : 'a key without an id';
  switch (forgery) {
    case 'unsigned':
      return 'it has no signature';
    case 'unknown_key':
      return `it names ${key}, which is not in MESSAGE_KEYS of this process`;
    case 'wrong_signature':
      return `its signature does not match ${key}, this body and this topic`;
  }
}
