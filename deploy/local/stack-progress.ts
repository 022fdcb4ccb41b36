import { Listr } from 'listr2';
import type { OnProgress, StackProgress, StackStep } from './stack/progress.js';
import { SERVER_NAMES } from './stack/servers/server-spec.js';

/** Minimum interval between two lines of a long step in a log file or a pipe. */
const PLAIN_EVERY_MS = 3_000;

/** The steps of starting all servers. */
export const UP_STEPS: readonly StackStep[] = ['artifacts', ...SERVER_NAMES, 'topics'];

const TITLES: Record<StackStep, string> = {
  artifacts: 'Programs',
  redis: 'Redis',
  mysql: 'MySQL',
  namesrv: 'RocketMQ name server',
  proxy: 'RocketMQ proxy and broker',
  topics: 'Topics and groups',
};

export type ProgressStyle = 'terminal' | 'plain' | 'json';

export function progressStyle(json: boolean): ProgressStyle {
  if (json) return 'json';
  return process.stdout.isTTY ? 'terminal' : 'plain';
}

/** Runs work and shows its progress: a live list for people, lines for files, JSON lines for programs. */
export function showProgress<T>(
  style: ProgressStyle,
  steps: readonly StackStep[],
  work: (onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  switch (style) {
    case 'json':
      return work((progress) => process.stdout.write(`${JSON.stringify(progress)}\n`));
    case 'plain':
      return work(plainLines());
    case 'terminal':
      return movingList(steps, work);
  }
}

function plainLines(): OnProgress {
  const lastAtMs = new Map<StackStep, number>();
  return ({ step, state, text, elapsedMs }) => {
    // the end of a step is enough, and the command prints the error
    if (state === 'begun' || state === 'failed') return;
    const sinceMs = elapsedMs - (lastAtMs.get(step) ?? -Infinity);
    if (state === 'working' && sinceMs < PLAIN_EVERY_MS) return;
    lastAtMs.set(step, elapsedMs);
    process.stdout.write(`${seconds(elapsedMs).padStart(7)}  ${TITLES[step]}: ${text}\n`);
  };
}

/**
 * Draws one line per step. Keeps the last progress of each step, because progress may arrive before listr2 starts its
 * line.
 */
async function movingList<T>(steps: readonly StackStep[], work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const latest = new Map<StackStep, StackProgress>();
  const lines = new Map<StackStep, (progress: StackProgress) => void>();
  let over = (): void => undefined;
  const allOver = new Promise<void>((resolve) => (over = resolve));
  const list = new Listr(
    steps.map((step) => ({
      title: TITLES[step],
      task: (_context: unknown, line: { title?: string; skip: (message: string) => void }) =>
        new Promise<void>((resolve, reject) => {
          const draw = (progress: StackProgress): void => {
            line.title = titleOf(progress);
            if (progress.state === 'failed') reject(new Error(line.title));
            if (progress.state === 'done' || progress.state === 'skipped') resolve();
          };
          lines.set(step, draw);
          const missed = latest.get(step);
          if (missed !== undefined) draw(missed);
          void allOver.then(() => {
            if (!isOver(latest.get(step))) line.skip(TITLES[step]); // not needed, or given up
            resolve();
          });
        }),
    })),
    {
      concurrent: true,
      exitOnError: false,
      registerSignalListeners: false,
      rendererOptions: { showErrorMessage: false },
    },
  );
  const shown = list.run();
  try {
    return await work((progress) => {
      latest.set(progress.step, progress);
      lines.get(progress.step)?.(progress);
    });
  } finally {
    over();
    await shown;
  }
}

function isOver(progress: StackProgress | undefined): boolean {
  return progress !== undefined && progress.state !== 'begun' && progress.state !== 'working';
}

function titleOf({ step, state, text, elapsedMs }: StackProgress): string {
  switch (state) {
    case 'begun':
    case 'working':
      return `${TITLES[step]}: ${text}`;
    case 'done':
    case 'skipped':
      return `${TITLES[step]}: ${text}, ${seconds(elapsedMs)}`;
    case 'failed':
      return TITLES[step]; // the command prints the reason once
  }
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
