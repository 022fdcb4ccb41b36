import { join } from 'node:path';
import { ensureArtifacts } from './artifacts.js';
import { type OnProgress, runStep } from './progress.js';
import { versionOf } from './run-command.js';
import type { Tools } from './servers/server-spec.js';
import { StackError } from './stack-error.js';
import type { Versions } from './versions.js';

/** Looks up Java and the server programs once per process. */
export function toolsOnce(
  artifactsDir: string,
  env: NodeJS.ProcessEnv,
  versions: Versions,
  onProgress: OnProgress,
): (signal?: AbortSignal) => Promise<Tools> {
  let found: Promise<Tools> | null = null;
  return (signal) => {
    found ??= findTools(artifactsDir, env, versions, onProgress, signal).catch((error: unknown) => {
      found = null; // a later start tries again
      throw error;
    });
    return found;
  };
}

async function findTools(
  artifactsDir: string,
  env: NodeJS.ProcessEnv,
  versions: Versions,
  onProgress: OnProgress,
  signal?: AbortSignal,
): Promise<Tools> {
  let tools: Tools | null = null;
  await runStep('artifacts', 'checking', onProgress, async ({ report }) => {
    const java = await findJava(env);
    let downloaded = false;
    const artifacts = await ensureArtifacts(artifactsDir, env, versions, {
      onText: (text) => ((downloaded = true), report(text)),
      signal,
    });
    tools = { java, artifacts };
    return downloaded ? 'downloaded and unpacked' : { skipped: 'in place' };
  });
  return tools as unknown as Tools;
}

const JAVA_MAJOR_MIN = 17;

/** Parses `openjdk version "17.0.15"` → 17; `java version "1.8.0_392"` → 8; null for anything else. */
function parseJavaMajor(versionOutput: string): number | null {
  const match = /version "(?:1\.)?(\d+)/.exec(versionOutput);
  return match?.[1] === undefined ? null : Number(match[1]);
}

/** @returns the java program to use. @throws StackError when Java is missing or too old */
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
