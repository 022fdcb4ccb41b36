import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { runCommand } from './run-command.js';

/** Where the admin tool of RocketMQ finds its parts and leaves its traces. */
export interface AdminSite {
  readonly java: string;
  readonly rocketmqLib: string;
  /** For its logs, temporary files and our lists. */
  readonly workDir: string;
  /** Everything it said. */
  readonly logFile: string;
}

/** A call takes 1 to 4 s, 7 s on a busy machine. */
const TIMEOUT_MS = 60_000;

/**
 * Runs one admin command.
 * @returns null, or the line in which it complains. Null proves nothing: it exits 0 on failure. Read back.
 */
export async function runMqadmin(
  site: AdminSite,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<string | null> {
  for (const dir of [site.workDir, dirname(site.logFile)]) mkdirSync(dir, { recursive: true });
  const flags = [
    '-Xmx256m',
    '-XX:TieredStopAtLevel=1',
    '-XX:+UseSerialGC',
    `-Duser.home=${site.workDir}`,
    `-Djava.io.tmpdir=${site.workDir}`,
    `-Drocketmq.home.dir=${site.workDir}`,
    '-Drmq.logback.configurationFile=rmq.tools.logback.xml',
  ];
  const { exitCode, output } = await runCommand(
    site.java,
    [...flags, '-cp', `${site.rocketmqLib}/*`, 'org.apache.rocketmq.tools.command.MQAdminStartup', ...args],
    { timeoutMs: TIMEOUT_MS, signal },
  );
  appendFileSync(site.logFile, `# mqadmin ${args.join(' ')}\n${output}\n`);
  if (exitCode === null) return `${args[0]} was ended after ${TIMEOUT_MS / 1000} s`;
  return output.split('\n').find((line) => line.includes('Exception')) ?? null;
}
