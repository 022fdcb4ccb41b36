import { existsSync } from 'node:fs';
import { cp, rm } from 'node:fs/promises';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import { brokerStore, startBroker } from './broker.js';
import type { StackControls } from './stack-controls.js';
import { until } from './wait.js';

// Copies MySQL, and empties servers, for scenarios that run alone.

type Servers = Pick<StackControls, 'servers'>;

/** The folder with the server's data. */
export function dataOf({ servers }: Servers, server: 'mysql' | 'redis'): string {
  const { data } = stackPaths(servers.dir);
  const isMariadb = server === 'mysql' && existsSync(data('mariadb')); // each server has a folder named after it
  return data(isMariadb ? 'mariadb' : server);
}
const copyOf = (stack: Servers): string => `${dataOf(stack, 'mysql')}-copy`;

/** Copies the whole data folder of MySQL while it is stopped, because the bundled server cannot make dumps. */
export async function copyMysql(stack: StackControls): Promise<void> {
  const server = stack.servers.server('mysql');
  await server.stop();
  await removeCopy(stack);
  await cp(dataOf(stack, 'mysql'), copyOf(stack), { recursive: true });
  await startMysql(stack);
}

/** Kills MySQL and starts it again with the data of the copy. */
export async function restoreMysql(stack: StackControls): Promise<void> {
  await stack.servers.server('mysql').stop({ signal: 'SIGKILL' });
  const [data, copy] = [dataOf(stack, 'mysql'), copyOf(stack)];
  await rm(data, { recursive: true });
  await cp(copy, data, { recursive: true });
  await startMysql(stack);
}

export const removeCopy = (stack: Servers): Promise<void> => rm(copyOf(stack), { recursive: true, force: true });

async function startMysql({ servers, mysql }: StackControls): Promise<void> {
  const server = servers.server('mysql');
  await server.start();
  await server.waitReady();
  // each open connection fails once
  await until('we are connected to MySQL again', () => mysql.probe().then(() => true));
}

/** Kills Redis and starts it again empty. */
export async function emptyRedis(stack: StackControls): Promise<void> {
  const server = stack.servers.server('redis');
  await server.stop({ signal: 'SIGKILL' });
  await rm(dataOf(stack, 'redis'), { recursive: true });
  await server.start();
  await server.waitReady();
  await until('we are connected to Redis again', async () => (await stack.redis.redis.ping()) === 'PONG');
}

/** Kills the broker and starts it again without messages, topics and groups. */
export async function emptyBroker(stack: StackControls): Promise<void> {
  await stack.servers.server('proxy').stop({ signal: 'SIGKILL' });
  await rm(brokerStore(stack), { recursive: true });
  await startBroker(stack);
}
