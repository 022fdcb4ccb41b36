import { readKeyring } from '../../src/core/hmac.js';
import { MessageSignatures, SignedMessages, type SignedMessagesPorts } from '../../src/core/message-signatures.js';
import { silentLog } from './silent-log.js';

/** Those of programs that run in the process of a test. */
export const TEST_SIGNATURES = new MessageSignatures(readKeyring('test:a-key-of-tests-that-is-forty-bytes-long-'));

/** Those of the programs that run on a stack. */
export const signaturesOf = ({ MESSAGE_KEYS }: { readonly MESSAGE_KEYS: string }): MessageSignatures =>
  new MessageSignatures(readKeyring(MESSAGE_KEYS));

/** The check of a program with the keys of tests; what is forged is parked in `deadLetters`. */
export const signedMessages = (parts: Partial<SignedMessagesPorts> = {}): SignedMessages =>
  new SignedMessages({
    signatures: TEST_SIGNATURES,
    deadLetters: { park: async () => 'parked' },
    metrics: { forged: () => undefined, unsignedAccepted: () => undefined },
    log: silentLog,
    ...parts,
  });
