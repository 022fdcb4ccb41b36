import { Listr } from 'listr2';
import type { OnProgress, StackProgress, StackStep } from '../stack/progress.js';

/** How news of a long step reach a log file or a pipe: not more than one line in this time. */
const PLAIN_EVERY_MS = 3_000;

const TITLES: Record<StackStep, string> = {
  artifacts: 'Programs',
  redis: 'Redis',
  mariadb: 'MariaDB',
  namesrv: 'RocketMQ name server',
  proxy: 'RocketMQ proxy and broker',
  topics: 'Topics and groups',
};

export type ProgressStyle = 'terminal' | 'plain' | 'json';

export function progressStyle(json: boolean): ProgressStyle {
  if (json) return 'json';
  return process.stdout.isTTY ? 'terminal' : 'plain';
}

/** Runs work and shows its progress: a moving list for people, lines for files, JSON lines for programs. */
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
    if (state === 'begun' || state === 'failed') return; // the end of a step says enough, the command says the error
    const sinceMs = elapsedMs - (lastAtMs.get(step) ?? -Infinity);
    if (state === 'working' && sinceMs < PLAIN_EVERY_MS) return;
    lastAtMs.set(step, elapsedMs);
    process.stdout.write(`${seconds(elapsedMs).padStart(7)}  ${TITLES[step]}: ${text}\n`);
  };
}

interface Follower {
  readonly take: (progress: StackProgress) => void;
  readonly end: () => void;
}

async function movingList<T>(steps: readonly StackStep[], work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const followers = new Map<StackStep, Follower>();
  const list = new Listr(
    steps.map((step) => ({
      title: TITLES[step],
      task: (_context: unknown, task: { title?: string; output?: string; skip: (text: string) => void }) =>
        new Promise<void>((resolve, reject) => {
          const take = ({ state, text, elapsedMs }: StackProgress): void => {
            if (state === 'failed') return reject(new Error(TITLES[step]));
            if (state === 'begun' || state === 'working') task.title = `${TITLES[step]}: ${text}`;
            else task.title = `${TITLES[step]}: ${text}, ${seconds(elapsedMs)}`;
            if (state === 'done' || state === 'skipped') resolve();
          };
          followers.set(step, { take, end: resolve });
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
    return await work((progress) => followers.get(progress.step)?.take(progress));
  } finally {
    for (const { end } of followers.values()) end(); // steps that were not needed
    await shown;
  }
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
