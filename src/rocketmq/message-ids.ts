import { randomBytes } from 'node:crypto';
import { MessageIdFactory } from 'rocketmq-client-nodejs';

const PROCESS_MAC = randomBytes(6).toString('hex');

/**
 * Makes message ids unique. An id is MAC + pid + second + counter, and containers share MAC and pid. With two equal
 * ids, a commit could end the half message of another process. The client sets the real MAC some time after its import,
 * so call this after `startup()`.
 */
export function useRandomMessageIds(): void {
  MessageIdFactory.MAC = PROCESS_MAC;
}
