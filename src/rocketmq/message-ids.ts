import { randomBytes } from 'node:crypto';
import { MessageIdFactory } from 'rocketmq-client-nodejs';

const PROCESS_MAC = randomBytes(6).toString('hex');

/**
 * Message ids are MAC + pid + second + counter, and containers share MAC and pid; two equal ids would let one commit
 * end a foreign half message. The client sets the real MAC some time after its import, so this runs after `startup()`.
 */
export function useRandomMessageIds(): void {
  MessageIdFactory.MAC = PROCESS_MAC;
}
