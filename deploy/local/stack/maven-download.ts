import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findMaven } from './toolchain.js';
import { runCommand } from './run-command.js';
import { StackError } from './stack-error.js';

/** 400 MB over a slow line; Maven has shorter limits of its own for a line that is dead. */
const DOWNLOAD_TIMEOUT_MS = 30 * 60_000;
const REPORT_EVERY_MS = 1_000;

/**
 * Lets Maven fetch and unpack everything the pom pins into `outDir`.
 * @throws StackError with Maven's own first reason
 */
export async function downloadArtifacts(
  pom: string,
  outDir: string,
  { onText, signal }: { onText: (text: string) => void; signal?: AbortSignal | undefined },
): Promise<void> {
  const maven = await findMaven();
  onText('asking Maven for RocketMQ, MariaDB and Redis');
  const counter = new DownloadCounter();
  const ticker = setInterval(() => onText(counter.text(countJars(outDir))), REPORT_EVERY_MS);
  try {
    const { exitCode, output } = await runCommand(maven, ['-B', '-f', pom, 'generate-resources', `-Dout=${outDir}`], {
      timeoutMs: DOWNLOAD_TIMEOUT_MS,
      signal,
      onLine: (line) => counter.take(line),
    });
    if (exitCode !== 0) throw new StackError(mavenFailure(output));
  } finally {
    clearInterval(ticker);
  }
}

/** RocketMQ has 150 jars; they are copied one by one once Maven has them. */
function countJars(outDir: string): number {
  try {
    return readdirSync(join(outDir, 'rocketmq')).length;
  } catch {
    return 0; // Maven has not come that far
  }
}

/** Counts what Maven reports: "Downloaded from central: …/x.jar (1.2 MB at 3 MB/s)". */
export class DownloadCounter {
  #files = 0;
  #bytes = 0;

  take(line: string): void {
    const size = /\bDownloaded from .*\(([\d.]+) (B|kB|MB|GB) at /.exec(line);
    if (size === null) return;
    const unit = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 }[size[2] as 'B' | 'kB' | 'MB' | 'GB'];
    this.#files += 1;
    this.#bytes += Number(size[1]) * unit;
  }

  /** @param jars how many are in place */
  text(jars: number): string {
    const parts = [
      this.#files > 0 ? `${this.#files} files downloaded (${(this.#bytes / 1e6).toFixed(0)} MB)` : '',
      jars > 0 ? `${jars} jars in place` : '',
    ].filter((part) => part !== '');
    return parts.length === 0 ? 'Maven is at work' : parts.join(', ');
  }
}

/** One sentence out of a page of Maven's errors. */
export function mavenFailure(output: string): string {
  if (/No space left on device/i.test(output)) {
    return 'Maven ran out of disk space; free about 1 GiB and run `stack up` again.';
  }
  const reason = /\[ERROR\] (.+)/.exec(output)?.[1] ?? output.trim().split('\n').at(-1) ?? 'it said nothing';
  const hint = /offline|Unknown host|Connection|timed out|Could not transfer/i.test(reason)
    ? 'check the network (or a proxy in the Maven settings)'
    : 'see what it says';
  const short = reason
    .replace(/ -> \[Help \d+\].*/, '')
    .replace(/https?:\/\/[^\s)]+/g, 'the repository')
    .slice(0, 300);
  return `Maven could not fetch the servers: ${short.trim()}; ${hint} and run \`stack up\` again.`;
}
