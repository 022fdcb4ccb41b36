import { readKeyring } from '../../src/core/hmac.js';
import { MessageSignatures, SignedMessages, type SignedMessagesPorts } from '../../src/core/message-signatures.js';
import { silentLog } from './silent-log.js';

/** Signatures of programs that run in the process of a test. */
export const TEST_SIGNATURES = new MessageSignatures(readKeyring('test:a-key-of-tests-that-is-forty-bytes-long-'));

/** Returns the signatures of the programs that run on a stack. */
export const signaturesOf = ({ MESSAGE_KEYS }: { readonly MESSAGE_KEYS: string }): MessageSignatures =>
  new MessageSignatures(readKeyring(MESSAGE_KEYS));

/** Returns the check of a program with the keys of tests. Forged messages are parked in `deadLetters`. */
export const signedMessages = (parts: Partial<SignedMessagesPorts> = {}): SignedMessages =>
  new SignedMessages({
    signatures: TEST_SIGNATURES,
    deadLetters: { park: async () => 'parked' },
    metrics: { forged: () => undefined, unsignedAccepted: () => undefined },
    log: silentLog,
    ...parts,
  });
