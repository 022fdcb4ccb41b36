import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { tlsFlags } from './servers/rocketmq.js';
import type { Instance, Tools } from './servers/server-spec.js';
import { StackError } from './stack-error.js';

export interface MqadminResult {
  readonly stdout: string;
  readonly stderr: string;
  /** 1 if the output reports a failure. The tool itself always exits with 0. */
  readonly exitCode: number;
}

/** A JVM takes seconds to start on a busy machine, and the tool waits long for an absent broker. */
const TIMEOUT_MS = 120_000;
/** Output that shows a failed command. The tool gives no other sign of failure. */
const FAILED = /^(?:(?:org\.apache|java)\.[\w.]*Exception|The sub command .* not exist)/m;

/**
 * Runs RocketMQ's admin tool on the broker of this folder, as the user of the programs, whom the tool reads from
 * `conf/tools.yml`.
 * @param args arguments of the tool; adds `-n`, the name server, if it is missing
 * @throws StackError before the first start of the folder, or when Java does not run
 */
export async function runMqadmin(
  { java, artifacts }: Tools,
  { paths, ports, certificates = null }: Pick<Instance, 'paths' | 'ports' | 'certificates'>,
  args: readonly string[],
): Promise<MqadminResult> {
  if (!existsSync(paths.conf('tools.yml'))) {
    throw new StackError('These servers were never started by this version: npm run stack -- up.');
  }
  const where =
    args.length === 0 || args[0] === 'help' || args.includes('-n') ? [] : ['-n', `127.0.0.1:${ports.namesrv}`];
  const child = spawn(
    java,
    [
      '-Xmx256m',
      '-XX:TieredStopAtLevel=1',
      `-Duser.home=${paths.log(join('rocketmq', 'mqadmin'))}`,
      `-Drocketmq.home.dir=${paths.dir}`,
      '-Drmq.logback.configurationFile=rmq.tools.logback.xml',
      ...(certificates === null ? [] : tlsFlags(certificates)),
      '-cp',
      `${artifacts.rocketmqLib}/*`,
      'org.apache.rocketmq.tools.command.MQAdminStartup',
      ...args,
      ...where,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], timeout: TIMEOUT_MS, killSignal: 'SIGKILL' },
  );
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (cause) => reject(new StackError(`Java does not run (${cause.message}).`, { cause })));
    child.once('close', resolve);
  });
  return { stdout, stderr, exitCode: exitCode !== 0 || FAILED.test(stdout + stderr) ? 1 : 0 };
}
