import { Option, type Command } from 'commander';
import { withoutUndefined } from '../core/without-undefined.js';
import { CliError } from './cli-error.js';
import { limitOption, operatorName, parseRowNumber, subcommand } from './options.js';
import { print, printPage } from './print.js';

interface Filter<State> {
  readonly state?: State;
  readonly saleId?: string;
}
interface Store<State, T> {
  list(filter: Filter<State>, page: { readonly after?: string; readonly max: number }): Promise<readonly T[]>;
  /** @returns null if there is no such record */
  close(id: string, actor: string): Promise<T | null>;
}

/** Records that are open until an operator closes them. */
interface Closable<State extends string, T> {
  /** What a record is called, such as `finding`. */
  readonly noun: string;
  readonly states: readonly State[];
  readonly withStore: (task: (store: Store<State, T>) => Promise<void>) => Promise<void>;
  readonly idOf: (record: T) => string;
  readonly body: (record: T) => object;
  readonly header: string;
  readonly line: (record: T) => string;
}

export interface ListFlags<State> {
  readonly state: State | 'all';
  readonly sale?: string;
  readonly after?: string;
  readonly limit: number;
  readonly json?: boolean;
}

/** Adds the commands `list` and `close`. @returns `list`, which takes the option `--sale` if it is added */
export function addListAndClose<State extends string, T>(command: Command, records: Closable<State, T>): Command {
  const { noun, states, withStore } = records;
  const parseNumber = parseRowNumber(`${command.name()} list`);
  const listed = subcommand(command, 'list', `print one line per ${noun}, oldest first`)
    .addOption(new Option('--state <state>', `only ${noun}s in this state`).choices([...states, 'all']).default('open'))
    .option(`--after <${noun}Id>`, `only ${noun}s after this one`, parseNumber)
    .addOption(limitOption(`${noun}s`))
    .option('--json', `one JSON line per ${noun}`)
    .action((flags: ListFlags<State>) => withStore((store) => list(store, records, flags)));
  subcommand(command, 'close', `mark a ${noun} as handled`)
    .argument(`<${noun}Id>`, `number that \`${command.name()} list\` shows`, parseNumber)
    .option('--json', 'print one JSON line')
    .action((id: string, { json }: { json?: boolean }) =>
      withStore(async (store) => {
        const closed = await store.close(id, operatorName());
        if (closed === null) throw new CliError(`there is no ${noun} ${id}.`);
        print(json ? JSON.stringify(records.body(closed)) : `${noun} ${id} is closed.`);
      }),
    );
  return listed;
}

async function list<State extends string, T>(
  store: Store<State, T>,
  { idOf, body, header, line }: Closable<State, T>,
  { state, sale, after, ...flags }: ListFlags<State>,
): Promise<void> {
  const filter = withoutUndefined({ state: state === 'all' ? undefined : state, saleId: sale });
  const found = await store.list(filter, { max: flags.limit, ...withoutUndefined({ after }) });
  printPage(found, flags, { header, line, body, next: (last) => `--after ${idOf(last)}` });
}
