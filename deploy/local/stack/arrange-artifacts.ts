import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { StackError } from './stack-error.js';

/** Names inside a finished artifact folder. */
export const BUNDLED = {
  rocketmq: 'rocketmq',
  redis: 'redis-server',
  mariadb: 'mariadb',
  mariadbd: 'mariadb/bin/mariadbd',
} as const;

/** Lists what the folder holds, with sizes in bytes. Written last: without it the folder counts for nothing. */
const MARKER = 'complete.json';

/** As the embedded-redis artifact calls the processors. */
const REDIS_PLATFORMS: Partial<Record<NodeJS.Architecture, string>> = { x64: 'linux-amd64', arm64: 'linux-arm64' };

/** Gives the unpacked files short names, sets the run bits, drops what this machine cannot use, writes the marker. */
export function arrangeArtifacts(home: string): void {
  const [redisJar, mariadbJar] = [join(home, 'redis-jar'), join(home, 'mariadb-jar')];
  const platform = REDIS_PLATFORMS[process.arch];
  const redis = readdirSync(redisJar).find((file) => platform !== undefined && file.endsWith(platform));
  if (redis !== undefined) takeBinary(join(redisJar, redis), join(home, BUNDLED.redis));

  const mariadbd = (readdirSync(mariadbJar, { recursive: true }) as string[]).find((f) => f.endsWith('bin/mariadbd'));
  if (mariadbd === undefined) throw new StackError('The MariaDB artifact holds no bin/mariadbd; check the pom.');
  if (process.arch === 'x64') {
    renameSync(dirname(dirname(join(mariadbJar, mariadbd))), join(home, BUNDLED.mariadb));
    chmodSync(join(home, BUNDLED.mariadbd), 0o755);
  }
  for (const folder of [redisJar, mariadbJar, join(home, 'target')]) rmSync(folder, { recursive: true, force: true });

  const jars = readdirSync(join(home, BUNDLED.rocketmq)).map((jar) => join(BUNDLED.rocketmq, jar));
  const files = [...jars, BUNDLED.mariadbd, BUNDLED.redis].filter((file) => existsSync(join(home, file)));
  const sizes = Object.fromEntries(files.map((file) => [file, statSync(join(home, file)).size]));
  writeFileSync(join(home, MARKER), `${JSON.stringify(sizes)}\n`);
}

/** True for a folder with its marker, whose files are all there in full: files can get lost later, too. */
export function isComplete(home: string): boolean {
  try {
    const sizes = JSON.parse(readFileSync(join(home, MARKER), 'utf8')) as Record<string, number>;
    return Object.entries(sizes).every(([file, size]) => statSync(join(home, file)).size === size);
  } catch {
    return false;
  }
}

function takeBinary(from: string, to: string): void {
  renameSync(from, to);
  chmodSync(to, 0o755);
}
