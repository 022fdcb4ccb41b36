import type { SignedMessages } from '../../../src/core/message-signatures.js';
import { signedMessages } from '../../helpers/signatures.js';
import type { SimulatedProcess } from '../engine/simulated-process.js';
import { withFaults } from '../engine/with-faults.js';
import type { SimulatedSystem } from '../simulated-system.js';

/** The check of signatures in one process. */
export const signedMessagesOf = (proc: SimulatedProcess, system: SimulatedSystem): SignedMessages =>
  signedMessages({
    deadLetters: withFaults(proc, 'mysql', system.deadLetters, ['park']),
    metrics: { forged: (_, forgery) => system.count(`forged: ${forgery}`), unsignedAccepted: () => undefined },
    log: system.log,
  });
