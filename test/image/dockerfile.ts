/** One line of a Dockerfile, with what it goes on with. */
interface Instruction {
  readonly word: string;
  readonly text: string;
}

/** From one FROM to the next. */
export interface Stage {
  readonly from: string;
  /** Of `AS name`; empty: it has none. */
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

/** How a container of the image is started. */
export interface ImageConfig {
  readonly env: Readonly<Record<string, string>>;
  readonly user: number;
  readonly workdir: string;
  readonly ports: readonly number[];
  readonly healthcheck: readonly string[];
  readonly entrypoint: readonly string[];
}

/** What is understood here. A Dockerfile that says more is refused, so that nothing of it is left out in silence. */
const WORDS = ['COPY', 'RUN', 'WORKDIR', 'USER', 'ENV', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'];

/** @throws Error for an instruction that is not understood here */
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
        throw new Error(`the Dockerfile says ${word}, which is not understood here`);
      stage.instructions.push({ word, text: rest });
    }
  }
  return stages;
}

/** Sources and target of a COPY of a build stage. @throws Error where it has an option */
export function readCopy(text: string): { readonly sources: readonly string[]; readonly target: string } {
  const words = text.split(/\s+/);
  if (words.some((word) => word.startsWith('--'))) throw new Error(`COPY ${text}: no option is understood here`);
  return { sources: words.slice(0, -1), target: words.at(-1) as string };
}

/** @throws Error where the stage is not an empty image with the root that the build has made */
export function readConfig(stage: Stage, root: { readonly stage: string; readonly folder: string }): ImageConfig {
  const all = (word: string): string[] => stage.instructions.filter((one) => one.word === word).map(({ text }) => text);
  const only = (word: string): string => {
    const [text, ...more] = all(word);
    if (text === undefined || more.length > 0)
      throw new Error(`the Dockerfile must say ${word} once in its last stage`);
    return text;
  };
  const copied = `--from=${root.stage} ${root.folder} /`;
  if (stage.from !== 'scratch' || only('COPY') !== copied) {
    throw new Error(`the last stage must be FROM scratch with COPY ${copied}, and nothing else`);
  }
  if (all('RUN').length > 0) throw new Error('nothing can be run in the last stage: it has no shell');
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
