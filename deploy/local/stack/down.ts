import type { ManagedServer } from './managed-server.js';
import { runStep, type OnProgress } from './progress.js';
import type { ServerName } from './servers/server-spec.js';

/**
 * Each chain is stopped one after the other, chains side by side: the broker says goodbye to the name server, the
 * databases depend on nobody.
 */
const STOP_CHAINS: readonly (readonly ServerName[])[] = [['proxy', 'namesrv'], ['mariadb'], ['redis']];

export interface DownOptions {
  /** How to end the servers; SIGKILL is a crash, but quick. Default SIGTERM. */
  readonly signal?: NodeJS.Signals;
}

/** @returns what ran and was stopped */
export async function down(
  servers: readonly ManagedServer[],
  onProgress: OnProgress,
  { signal = 'SIGTERM' }: DownOptions,
): Promise<ServerName[]> {
  const stopped: ServerName[] = [];
  const chains = STOP_CHAINS.map(async (chain) => {
    for (const name of chain) {
      const server = servers.find((one) => one.name === name);
      if (server !== undefined && (await stopOne(server, onProgress, signal))) stopped.push(name);
    }
  });
  const failed = (await Promise.allSettled(chains)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return stopped;
}

async function stopOne(server: ManagedServer, onProgress: OnProgress, signal: NodeJS.Signals): Promise<boolean> {
  const pid = server.pid();
  await runStep(server.name, 'stopping', onProgress, async () => {
    await server.stop({ signal });
    return pid === null ? { skipped: 'does not run' } : 'stopped';
  });
  return pid !== null;
}
