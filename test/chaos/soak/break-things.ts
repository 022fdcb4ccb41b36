import { setTimeout as sleep } from 'node:timers/promises';
import { assertNever } from '../../../src/core/errors.js';
import { isStopped } from '../../../deploy/local/stack/process-identity.js';
import type { ServerName } from '../../../deploy/local/stack/servers/server-spec.js';
import type { Arena } from '../arena.js';
import { repaired, standingOf } from '../harness/lost-writes.js';
import type { ProgramName } from '../harness/programs.js';
import type { ProxiedName, ProxiedServer } from '../proxied-server.js';
import type { Fault } from './draw-faults.js';
import type { Fleet } from './fleet.js';

/** What faults reach into. */
export interface Breakable {
  readonly arena: Arena;
  readonly fleet: Fleet;
  /** Every program speaks to its servers through them. */
  readonly proxies: Readonly<Record<ProxiedName, ProxiedServer>>;
  /** Open sales, which Redis must have rebuilt after it was killed. */
  readonly saleIds: readonly string[];
  readonly signal: AbortSignal;
}

/** Undoes a fault; resolves when everything that was broken runs again. */
export type Undo = () => Promise<void>;

/**
 * Breaks one thing and waits for the proof that it is broken.
 * @throws when the fault did not bite; Undo throws when what was broken does not come back
 */
export function breakThings(world: Breakable, { kind, stallMs }: Fault): Promise<Undo> {
  switch (kind) {
    case 'api_killed':
      return killProgram(world, 'api');
    case 'worker_killed':
      return killProgram(world, 'worker');
    case 'keeper_killed':
      return killProgram(world, 'keeper');
    case 'api_stalled':
      return stallProgram(world, 'api', stallMs);
    case 'worker_stalled':
      return stallProgram(world, 'worker', stallMs);
    case 'keeper_stalled':
      return stallProgram(world, 'keeper', stallMs);
    case 'redis_killed':
      return killRedis(world);
    case 'redis_stalled':
      return stallServer(world, 'redis', stallMs);
    case 'redis_reset':
      return resetConnections(world, 'redis');
    case 'scripts_flushed':
      return flushScripts(world);
    case 'mysql_killed':
      return killServer(world, 'mariadb');
    case 'mysql_stalled':
      return stallServer(world, 'mariadb', stallMs);
    case 'mysql_reset':
      return resetConnections(world, 'mysql');
    case 'broker_killed':
      return killServer(world, 'proxy');
    case 'broker_reset':
      return resetConnections(world, 'broker');
    default:
      return assertNever(kind);
  }
}

async function killProgram({ arena, fleet }: Breakable, name: ProgramName): Promise<Undo> {
  const victim = await fleet.kill(name);
  const { signal } = await victim.exit;
  await arena.bite(`${name} ${victim.pid} was killed`, () => !victim.running && signal === 'SIGKILL');
  return () => fleet.replace(name);
}

async function stallProgram({ arena, fleet }: Breakable, name: ProgramName, stallMs: number): Promise<Undo> {
  const victim = fleet.victim(name);
  victim.signal('SIGSTOP');
  await arena.bite(`${name} ${victim.pid} stood still`, () => isStopped(victim.pid));
  return async () => {
    await sleep(stallMs);
    victim.signal('SIGCONT');
    await arena.until(`the ${name} goes on`, () => !isStopped(victim.pid));
  };
}

async function stallServer({ arena }: Breakable, name: ServerName, stallMs: number): Promise<Undo> {
  const server = arena.stack.servers.server(name);
  const pid = server.pid();
  server.kill('SIGSTOP');
  await arena.bite(`${name} stood still`, () => pid !== null && isStopped(pid));
  return async () => {
    await sleep(stallMs);
    server.kill('SIGCONT');
    await arena.until(`${name} goes on`, () => pid !== null && !isStopped(pid));
  };
}

async function killServer({ arena, signal }: Breakable, name: ServerName): Promise<Undo> {
  const server = arena.stack.servers.server(name);
  const pid = server.pid();
  await server.stop({ signal: 'SIGKILL' });
  await arena.bite(`${name} was killed`, () => pid !== null && server.pid() === null);
  return async () => {
    signal.throwIfAborted();
    await server.start();
    await server.waitReady();
  };
}

/** Nobody can tell that nothing is lost: every sale is shut and rebuilt under another epoch. */
async function killRedis(world: Breakable): Promise<Undo> {
  const { arena, saleIds } = world;
  const epochOf = async (saleId: string): Promise<number> => (await standingOf(arena.stack, saleId)).epoch;
  const epochs = await Promise.all(saleIds.map(epochOf));
  const start = await killServer(world, 'redis');
  return async () => {
    await start();
    const rebuilt = await Promise.all(saleIds.map((saleId, index) => repaired(arena.stack, saleId, epochs[index])));
    arena.bites.push(`sales were shut and rebuilt: epochs ${rebuilt.join(' ')}`);
  };
}

async function resetConnections({ arena, proxies }: Breakable, name: ProxiedName): Promise<Undo> {
  const { proxy } = proxies[name];
  const { open, connections } = proxy;
  proxy.reset();
  await arena.bite(`connections to ${name} were reset`, () => open > 0 && proxy.connections > connections);
  return () => Promise.resolve();
}

async function flushScripts({ arena }: Breakable): Promise<Undo> {
  const [redis] = arena.stack.redis.masters();
  const replies = await redis
    ?.multi([
      ['script', 'flush'],
      ['info', 'memory'],
    ])
    .exec();
  const memory = String(replies?.[1]?.[1]);
  await arena.bite('Redis had forgotten every script', () => /number_of_cached_scripts:0\r/.test(memory));
  return () => Promise.resolve();
}
