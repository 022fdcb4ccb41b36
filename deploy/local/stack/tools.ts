import { ensureArtifacts } from './artifacts.js';
import { runStep, type OnProgress } from './progress.js';
import type { Tools } from './servers/server-spec.js';
import { findJava } from './toolchain.js';

/** Java and the server programs, looked up once per process. */
export function toolsOnce(
  artifactsDir: string,
  env: NodeJS.ProcessEnv,
  onProgress: OnProgress,
): (signal?: AbortSignal) => Promise<Tools> {
  let found: Promise<Tools> | null = null;
  return (signal) => {
    found ??= findTools(artifactsDir, env, onProgress, signal).catch((error: unknown) => {
      found = null; // a later start may have better luck
      throw error;
    });
    return found;
  };
}

async function findTools(
  artifactsDir: string,
  env: NodeJS.ProcessEnv,
  onProgress: OnProgress,
  signal?: AbortSignal,
): Promise<Tools> {
  let tools: Tools | null = null;
  await runStep('artifacts', 'looking', onProgress, async ({ tell }) => {
    const java = await findJava(env);
    let downloaded = false;
    const artifacts = await ensureArtifacts(artifactsDir, env, {
      onText: (text) => ((downloaded = true), tell(text)),
      signal,
    });
    tools = { java, artifacts };
    return downloaded ? 'downloaded and unpacked' : { skipped: 'in place' };
  });
  return tools as unknown as Tools;
}
