import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOPICS } from '../../domain/topics.js';
import { findMessages } from '../../stack/find-messages.js';
import { TEMPLATES_DIR } from '../../stack/paths.js';
import { askRemoting, REQUEST, type RemotingAddress } from '../../stack/remoting.js';
import type { StackHands } from './stack-hands.js';

/** Topics of the broker's own, which clients cannot read: half messages, and those that it has given up. */
const HALF = 'RMQ_SYS_TRANS_HALF_TOPIC';
const GIVEN_UP = 'TRANS_CHECK_MAX_TIME_TOPIC';

type Broker = Pick<StackHands, 'servers'>;

/**
 * Runs `work` while the running broker has another number for a setting; then it has that of its file again.
 * Only for rows that run alone.
 * @throws Error when the broker does not answer
 */
export async function withBrokerSetting<T>(
  broker: Broker,
  name: string,
  value: number,
  work: () => Promise<T>,
): Promise<T> {
  const usual = settingInFile(name);
  await set(broker, name, String(value));
  try {
    return await work();
  } finally {
    await set(broker, name, usual);
  }
}

/** Whether the broker has given up the half message of a batch: it asks nobody about it any more. */
export async function isGivenUp(broker: Broker, batchId: string): Promise<boolean> {
  return (await findMessages(addressOf(broker), GIVEN_UP, batchId)).length > 0;
}

/** How long the half message of a batch was open, ms on the clock of the broker; null: nobody has committed it. */
export async function openForMs(broker: Broker, batchId: string): Promise<number | null> {
  const [halfAtMs] = await findMessages(addressOf(broker), HALF, batchId);
  const [committedAtMs] = await findMessages(addressOf(broker), TOPICS.purchase, batchId);
  return halfAtMs === undefined || committedAtMs === undefined ? null : committedAtMs - halfAtMs;
}

const addressOf = ({ servers }: Broker): RemotingAddress => ({ host: '127.0.0.1', port: servers.ports.broker });

async function set(broker: Broker, name: string, value: string): Promise<void> {
  await askRemoting(addressOf(broker), REQUEST.updateBrokerConfig, `${name}=${value}\n`);
}

function settingInFile(name: string): string {
  const text = readFileSync(join(TEMPLATES_DIR, 'broker.conf'), 'utf8');
  const [, value] = new RegExp(`^${name}=(\\d+)$`, 'm').exec(text) ?? [];
  if (value === undefined) throw new Error(`broker.conf has no number ${name}`);
  return value;
}
