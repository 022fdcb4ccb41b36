import { randomBytes } from 'node:crypto';
import { requestFrame, type LoadPlan } from '../load/load.js';

/** Four times what the api accepts. */
const OVERSIZED_BYTES = 16 * 1024;

/** Whole requests of attackers. They are made once: the machine they take their time from is ours. */
export class AttackRequests {
  readonly #head: Buffer;
  readonly #tail: Buffer;
  readonly #oversizedHead: string;

  constructor(plan: Pick<LoadPlan, 'port' | 'path'>) {
    const { head, tail } = requestFrame(plan);
    this.#head = Buffer.from(head, 'latin1');
    this.#tail = Buffer.from(tail, 'latin1');
    this.#oversizedHead = head.replace(/Content-Length: \d+/, `Content-Length: ${OVERSIZED_BYTES}`);
  }

  /** What a buyer would send. */
  genuine(record: Buffer): Buffer {
    return Buffer.concat([this.#head, record, this.#tail]);
  }

  /** The token of an account with a signature that somebody made up. */
  forged(record: Buffer): Buffer {
    return this.genuine(Buffer.from(withForgedToken(record.toString('latin1')), 'latin1'));
  }

  /** A true token, and a body of which nobody wants to hear. */
  oversized(record: Buffer): Buffer {
    const body = `{"quantity":1,"x":"${'x'.repeat(OVERSIZED_BYTES)}`.slice(0, OVERSIZED_BYTES - 2) + '"}';
    return Buffer.from(`${this.#oversizedHead}${record.toString('latin1')}\r\n${body}`, 'latin1');
  }
}

/** Replaces the signature of the token in the header lines of a buyer; every other byte stays. */
export function withForgedToken(record: string): string {
  return record.replace(
    /^(Authorization: Bearer [^.\r\n]+\.[^.\r\n]+\.)([^\r\n]+)/,
    (_all, shown: string, signature: string) =>
      shown + randomBytes(signature.length).toString('base64url').slice(0, signature.length),
  );
}
