import { join } from 'node:path';
import { runCommand, type CommandResult } from './run-command.js';
import { StackError } from './stack-error.js';

const JAVA_MAJOR_MIN = 17;
/** A cold JVM on a busy machine takes seconds to say its version. */
const VERSION_TIMEOUT_MS = 30_000;

/** `openjdk version "17.0.15"` → 17; `java version "1.8.0_392"` → 8; null for anything else. */
export function parseJavaMajor(versionOutput: string): number | null {
  const match = /version "(?:1\.)?(\d+)/.exec(versionOutput);
  return match?.[1] === undefined ? null : Number(match[1]);
}

/** @returns the java program to use. @throws StackError when there is none, or it is too old */
export async function findJava(env: NodeJS.ProcessEnv): Promise<string> {
  const java = env.JAVA_HOME ? join(env.JAVA_HOME, 'bin', 'java') : 'java';
  const where = env.JAVA_HOME ? `JAVA_HOME (${env.JAVA_HOME})` : 'PATH';
  const result = await versionOf(java, '-version');
  if (result === null) {
    throw new StackError(`No java found in ${where}; install a JDK ${JAVA_MAJOR_MIN} or newer, RocketMQ needs it.`);
  }
  const major = parseJavaMajor(result.output);
  if (major === null || major < JAVA_MAJOR_MIN) {
    const found = major === null ? 'no JDK we know' : `JDK ${major}`;
    throw new StackError(
      `The java in ${where} is ${found}; RocketMQ needs JDK ${JAVA_MAJOR_MIN} or newer: install one and set JAVA_HOME.`,
    );
  }
  return java;
}

/** @returns the Maven program. @throws StackError when there is none or it does not run */
export async function findMaven(): Promise<string> {
  const result = await versionOf('mvn', '-version');
  if (result === null) {
    throw new StackError('No mvn found in PATH; install Maven, it downloads the servers at the first start.');
  }
  if (result.exitCode !== 0) {
    const reason = result.output.trim().split('\n')[0] ?? '';
    throw new StackError(`Maven does not run (${reason}); check \`mvn -version\` and JAVA_HOME.`);
  }
  return 'mvn';
}

async function versionOf(program: string, flag: string): Promise<CommandResult | null> {
  try {
    return await runCommand(program, [flag], { timeoutMs: VERSION_TIMEOUT_MS });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR') return null;
    throw error;
  }
}
