import { cpSync, renameSync, rmSync } from 'node:fs';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import type { Arena } from '../arena.js';
import { freeVolume, mountVolume, unmountBelow } from './small-volume.js';

/** What earlier rows left in MariaDB fits several times. */
const VOLUME_BYTES = 1024 ** 3;

/**
 * Moves the data of a server onto a small volume, for a row that runs alone; when the row is over they move back. The server
 * starts again with all it had.
 * @returns the folder, which can be filled
 */
export async function moveToSmallVolume(arena: Arena, name: 'redis' | 'mariadb'): Promise<string> {
  const { servers } = arena.stack;
  const server = servers.server(name);
  const dir = stackPaths(servers.dir).data(name);
  const home = `${dir}-moved`;
  await server.stop();
  renameSync(dir, home);
  arena.atEnd(async () => {
    await server.stop(); // the runner makes every server run again
    unmountBelow(dir);
    rmSync(dir, { recursive: true, force: true });
    renameSync(home, dir);
  });
  mountVolume(dir, VOLUME_BYTES);
  cpSync(home, dir, { recursive: true });
  arena.atEnd(async () => {
    await server.stop();
    freeVolume(dir);
    rmSync(home, { recursive: true });
    cpSync(dir, home, { recursive: true });
  });
  await server.start();
  await server.waitReady();
  return dir;
}
