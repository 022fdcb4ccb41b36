import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TEMPLATES_DIR } from '../../../deploy/local/stack/paths.js';
import { askRemoting, REQUEST } from '../../../src/rocketmq/admin/remoting.js';
import type { StackHands } from './stack-hands.js';

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

async function set({ servers }: Broker, name: string, value: string): Promise<void> {
  const address = { host: '127.0.0.1', port: servers.ports.broker };
  await askRemoting(address, REQUEST.updateBrokerConfig, `${name}=${value}\n`);
}

function settingInFile(name: string): string {
  const text = readFileSync(join(TEMPLATES_DIR, 'broker.conf'), 'utf8');
  const [, value] = new RegExp(`^${name}=(\\d+)$`, 'm').exec(text) ?? [];
  if (value === undefined) throw new Error(`broker.conf has no number ${name}`);
  return value;
}
