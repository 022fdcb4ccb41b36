import { randomBytes } from 'node:crypto';
import { MessageIdFactory } from 'rocketmq-client-nodejs';

const PROCESS_MAC = randomBytes(6).toString('hex');

/**
 * An id is MAC + pid + second + counter, and containers share MAC and pid. With equal ids, a commit could end the half
 * message of another process. Call this after `startup()`, because the client sets the real MAC some time after its
 * import.
 */
export function useRandomMessageIds(): void {
  MessageIdFactory.MAC = PROCESS_MAC;
}
