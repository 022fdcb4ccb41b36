/** A Dockerfile instruction with its continuation lines. */
interface Instruction {
  readonly word: string;
  readonly text: string;
}

/** The lines from one FROM to the next. */
export interface Stage {
  readonly from: string;
  /** The name after AS, or empty. */
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

/** The settings with which a container starts. */
export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>;
  readonly user: number;
  readonly workdir: string;
  readonly ports: readonly number[];
  readonly healthcheck: readonly string[];
  readonly entrypoint: readonly string[];
}

/** The supported instructions. Others fail, so that no line is skipped silently. */
const WORDS = ['COPY', 'RUN', 'WORKDIR', 'USER', 'ENV', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'];

/** @throws Error for an unsupported instruction */
export function readDockerfile(text: string): Stage[] {
  const stages: { from: string; name: string; instructions: Instruction[] }[] = [];
  const lines = text.replace(/^[ \t]*#.*\n/gm, '').replace(/\\\n/g, ' ');
  for (const line of lines.split('\n')) {
    const [, word = '', rest = ''] = /^\s*(\S+)\s+(.*?)\s*$/.exec(line) ?? [];
    if (word === '') continue;
    if (word === 'FROM') {
      const [, from = '', name = ''] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(rest) ?? [];
      stages.push({ from, name, instructions: [] });
    } else {
      const stage = stages.at(-1);
      if (stage === undefined || !WORDS.includes(word))
        throw new Error(`${word} in the Dockerfile is not supported here`);
      stage.instructions.push({ word, text: rest });
    }
  }
  return stages;
}

/** Reads a COPY of a build stage. @throws Error if it has an option */
export function readCopy(text: string): { readonly sources: readonly string[]; readonly target: string } {
  const words = text.split(/\s+/);
  if (words.some((word) => word.startsWith('--'))) throw new Error(`COPY ${text}: options are not supported here`);
  return { sources: words.slice(0, -1), target: words.at(-1) as string };
}

/** @throws Error unless the stage is an empty image plus the root from the build */
export function readConfig(stage: Stage, root: { readonly stage: string; readonly folder: string }): ImageConfig {
  const all = (word: string): string[] => stage.instructions.filter((one) => one.word === word).map(({ text }) => text);
  const only = (word: string): string => {
    const [text, ...more] = all(word);
    if (text === undefined || more.length > 0)
      throw new Error(`the last stage of the Dockerfile must have ${word} once`);
    return text;
  };
  const copied = `--from=${root.stage} ${root.folder} /`;
  if (stage.from !== 'scratch' || only('COPY') !== copied) {
    throw new Error(`the last stage must be FROM scratch with the single COPY ${copied}`);
  }
  if (all('RUN').length > 0) throw new Error('the last stage cannot RUN anything, since it has no shell');
  const [user = ''] = only('USER').split(':');
  return {
    env: Object.fromEntries(all('ENV').flatMap((text) => text.split(/\s+/).map((pair) => splitOnce(pair, '=')))),
    user: Number(user),
    workdir: only('WORKDIR'),
    ports: all('EXPOSE').flatMap((text) => text.split(/\s+/).map(Number)),
    healthcheck: JSON.parse(splitOnce(only('HEALTHCHECK'), 'CMD')[1]) as string[],
    entrypoint: JSON.parse(only('ENTRYPOINT')) as string[],
  };
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return [text.slice(0, at), text.slice(at + separator.length)];
}
