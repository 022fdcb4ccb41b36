import { Command } from 'commander';
import { pause } from '../../core/after.js';
import { loadConfig } from '../../core/config/load.js';
import { TOPICS } from '../../core/topics.js';
import type { DiscardedHalf, Message, MqStatus } from '../../contract/broker.js';
import { createAuditLog } from '../../mysql/audit-log.js';
import { UsageError } from '../../process/cli-error.js';
import { withConfigured } from '../../process/connections.js';
import { clusterOption, namesrvOf, operatorName, parseTime, parseWhole } from '../../process/options.js';
import { inLine, isoTime, print, printError, tableLine } from '../../process/print.js';
import { brokerAccessOf } from '../../rocketmq/credentials.js';
import { browseFrom, OWN_GROUPS } from './message-inspection.js';
import { resumableOf, resumeHalf } from './resume-halves.js';
import { RocketmqInspection } from './rocketmq-inspection.js';

interface MqFlags {
  readonly namesrv?: string;
  readonly cluster: string | null;
  readonly json?: boolean;
  readonly watch?: number | true;
}

const WATCH_DEFAULT_S = 2;
const MESSAGES_DEFAULT = 20;
const MESSAGES_MAX = 1_000;
/** Maximum total length of all bodies in one answer, in characters. */
const BODIES_MAX = 64 * 1024 * 1024;
/** Maximum number of discarded half messages, newest first, that a command shows or resumes. */
const DISCARDED_MAX = 1_000;
/** Number of characters of a body that a table shows. `--json` prints the whole body. */
const BODY_SHOWN = 160;

const EXAMPLES = `
Examples:
  seckill mq status                                   one screen: brokers, lag, dead letters, half messages
  seckill mq status --watch                           the same, refreshed every two seconds
  seckill mq groups --all                             also groups of other systems, largest lag first
  seckill mq halves                                   half messages without a commit or rollback
  seckill mq halves --discarded                       half messages that the broker gave up on
  seckill mq resume --key x9QmT0yq4cM2nUo1bWv8kA      make the broker check back again for one of them
  seckill mq messages --topic seckill-purchase --key x9QmT0yq4cM2nUo1bWv8kA
  seckill mq messages --topic %DLQ%seckill-order-writer --queue 0 --offset 12
  seckill mq messages --topic seckill-order-event --since -10m --limit 5
  seckill mq consumers --group seckill-order-writer

Uses the admin protocol of the brokers that NAMESRV_ADDR names. Only \`resume\` changes anything. Lag counts messages that no
consumer has received; a received message without an acknowledgement does not count.
Exit codes: 0 done, 1 no name server answers or a broker is down, 2 wrong usage, or --yes is needed.`;

export function mqCommand(): Command {
  const mq = new Command('mq')
    .description('inspect RocketMQ: lag, half messages, dead letters, messages')
    .addHelpText('after', EXAMPLES);
  command(mq, 'status', 'show one screen: brokers, groups with their lag, dead letters, half messages').action(
    watched(async (inspection, { json }) => {
      const status = await inspection.status(OWN_GROUPS);
      if (json) print(JSON.stringify(status));
      else printStatus(status);
    }),
  );
  command(mq, 'groups', 'list consumer groups and their lag, largest first')
    .option('--all', 'also groups of other systems and of RocketMQ itself')
    .action(
      watched(async (inspection, { json, all }: MqFlags & { readonly all?: boolean }) => {
        const groups = await inspection.groups(all ? null : OWN_GROUPS);
        if (!json) print(groupLine('group', 'topic', 'lag', 'oldest', 'clients'));
        for (const one of groups) {
          const { group, topic, lag, oldestMs, clients } = one;
          const text = groupLine(group, topic, String(lag), ageOf(oldestMs), String(clients));
          print(json ? JSON.stringify(one) : text);
        }
      }),
    );
  command(mq, 'topics', 'list topics and their number of messages').action(
    watched(async (inspection, { json }) => {
      const topics = await inspection.topics();
      if (!json) print(topicLine('topic', 'type', 'queues', 'kept', 'newest'));
      for (const one of topics) {
        const { topic, type, queues, kept, lastStoredAtMs } = one;
        const newest = lastStoredAtMs === null ? '-' : isoTime(lastStoredAtMs);
        print(json ? JSON.stringify(one) : topicLine(topic, type || '-', String(queues), String(kept), newest));
      }
    }),
  );
  command(mq, 'halves', 'list half messages without a commit or rollback, oldest first')
    .option('--discarded', `list the newest ${DISCARDED_MAX} half messages that the broker gave up on instead`)
    .action(
      watched(async (inspection, { json, discarded }: MqFlags & { readonly discarded?: boolean }) => {
        if (discarded) return printDiscarded(await inspection.discarded({ max: DISCARDED_MAX }), json);
        const { open, more } = await inspection.halves();
        if (!json) print(halfLine('age', 'checks', 'batch or key', 'sale', 'purchases', 'topic'));
        for (const half of open) {
          const { ageMs, checks, key, saleId, purchases, topic } = half;
          const text = halfLine(ageOf(ageMs), String(checks), key, saleId ?? '-', String(purchases ?? '-'), topic);
          print(json ? JSON.stringify(half) : text);
        }
        if (more) printError('There are more, which were not read. The broker is far behind with its check-backs.');
      }),
    );
  connected(mq, 'resume', 'make the broker check back again for half messages that it gave up on')
    .option('--key <key>', 'only half messages with this key (for a batch: its id)')
    .option('--all', `of the newest ${DISCARDED_MAX}, all that have not been resumed yet`)
    .option('--yes', 'resume them; otherwise the command only shows them')
    .action(resume);
  command(mq, 'producers', 'list clients that answer check-backs').action(
    watched(async (inspection, { json }) => {
      if (!json) print(clientLine('topic', 'address', 'language', 'client'));
      for (const one of await inspection.producers()) {
        print(json ? JSON.stringify(one) : clientLine(one.group, one.address, one.language, one.clientId));
      }
    }),
  );
  command(mq, 'consumers', 'list clients of a consumer group')
    .requiredOption('--group <name>', 'the group')
    .action(
      watched(async (inspection, { json, group }: MqFlags & { readonly group: string }) => {
        if (!json) print(clientLine('group', 'address', 'language', 'client'));
        for (const one of await inspection.consumers(group)) {
          print(json ? JSON.stringify({ group, ...one }) : clientLine(group, one.address, one.language, one.clientId));
        }
      }),
    );
  command(mq, 'messages', 'show messages of a topic: by key or id, from a time or offset, or the newest')
    .option('--topic <name>', 'the topic', TOPICS.purchase)
    .option('--key <key>', 'only messages with this key (for a batch: its id)')
    .option('--id <id>', 'only the message with this id (UNIQ_KEY or offset id), and its copies')
    .option('--since <time>', 'messages from this time on: ISO 8601, or -2h for two hours ago', parseTime)
    .option('--queue <number>', 'only messages of this queue; needs --offset', parseWhole(0, 65_535))
    .option('--offset <number>', 'start at this offset; needs --queue', parseWhole(0, Number.MAX_SAFE_INTEGER))
    .option('--limit <count>', 'maximum number of messages', parseWhole(1, MESSAGES_MAX), MESSAGES_DEFAULT)
    .action(watched(messages));
  return mq;
}

const connected = (mq: Command, name: string, about: string): Command =>
  mq
    .command(name)
    .description(about)
    .option('--namesrv <host:port>', 'address of the name server (default: NAMESRV_ADDR)')
    .addOption(clusterOption())
    .option('--json', 'print JSON, one line each');

const command = (mq: Command, name: string, about: string): Command =>
  connected(mq, name, about).option(
    '--watch [seconds]',
    `refresh the output (default: every ${WATCH_DEFAULT_S} s)`,
    parseWhole(1, 3600),
  );

function inspect(flags: MqFlags): RocketmqInspection {
  const { brokerAccess } = loadConfig(['brokerAccess'], process.env);
  return new RocketmqInspection(namesrvOf(flags.namesrv), brokerAccessOf(brokerAccess), {
    cluster: flags.cluster,
    onDown: ({ name, down }) => {
      printError(inLine(`Broker ${name} is down, and its messages are not shown: ${down}`));
      process.exitCode = 1;
    },
  });
}

/** Runs an inspection once, or repeats it until Ctrl-C. */
const watched =
  <F extends MqFlags>(look: (inspection: RocketmqInspection, flags: F) => Promise<void>) =>
  async (flags: F): Promise<void> => {
    const inspection = inspect(flags);
    const everyS = flags.watch === true ? WATCH_DEFAULT_S : flags.watch;
    do {
      if (everyS !== undefined && !flags.json) {
        console.clear(); // only on a terminal
        print(isoTime(Date.now()));
      }
      await look(inspection, flags);
      if (everyS !== undefined) await pause(everyS * 1000);
    } while (everyS !== undefined);
  };

const EXIT_USAGE = 2;

/** Resumes half messages, but only of our own topics. Writes each to the audit log before it calls the broker. */
async function resume(
  flags: MqFlags & { readonly key?: string; readonly all?: boolean; readonly yes?: boolean },
): Promise<void> {
  const { key, all = false, yes = false, json } = flags;
  if ((key === undefined) === !all) throw new UsageError('give --key or --all.');
  const inspection = inspect(flags);
  const found = await inspection.discarded(key === undefined ? { max: DISCARDED_MAX } : { key });
  const { halves, tooOld } = resumableOf(found);
  if (tooOld > 0) printError(`${tooOld} are older than three days, so the broker would give up on them again at once.`);
  if (halves.length === 0) {
    printError(`The brokers keep no half message ${all ? '' : `of key ${key} `}that can be resumed.`);
    if (!all) process.exitCode = 1;
    return;
  }
  printDiscarded(halves, json);
  if (!yes) {
    printError(`${halves.length} can be resumed; nothing was done. Add --yes to resume them.`);
    process.exitCode = EXIT_USAGE;
    return;
  }
  let done = 0;
  try {
    await withConfigured('mq', ['mysql', 'redis'], async (connections) => {
      const audit = createAuditLog(connections.mysql());
      for (const half of halves) {
        await resumeHalf(half, operatorName(), { inspection, audit });
        done++;
      }
    });
  } finally {
    if (!json) print(`${done} of ${halves.length} resumed. The broker checks back within seconds.`);
  }
}

async function messages(
  inspection: RocketmqInspection,
  flags: MqFlags & {
    readonly topic: string;
    readonly key?: string;
    readonly id?: string;
    readonly since?: number;
    readonly queue?: number;
    readonly offset?: number;
    readonly limit: number;
  },
): Promise<void> {
  const { topic, key, id, queue, offset, since, limit, json } = flags;
  if ((queue === undefined) !== (offset === undefined)) throw new UsageError('--queue and --offset go together.');
  const ways = [key, id, queue, since].filter((way) => way !== undefined);
  if (ways.length > 1) throw new UsageError('give one of --key, --id, --since, and --queue with --offset.');
  const find = async (): Promise<readonly Message[]> => {
    if (key !== undefined) return inspection.messagesOfKey(topic, key);
    if (id !== undefined) return inspection.messagesOfId(topic, id);
    return (await inspection.browse(topic, browseFrom(flags), { max: limit, bodiesMax: BODIES_MAX })).messages;
  };
  const found = (await find()).slice(0, limit);
  for (const message of found) {
    if (json) print(JSON.stringify(message));
    else printMessage(message);
  }
  if (found.length === 0) printError(`Topic ${topic} has no such message.`);
}

function printDiscarded(halves: readonly DiscardedHalf[], json: boolean | undefined): void {
  if (!json) print(discardedLine('given up at', 'resumed at', 'batch or key', 'sale', 'purchases', 'topic'));
  for (const half of halves) {
    const { discardedAtMs, resumedAtMs, key, saleId, purchases, topic } = half;
    const resumedAt = resumedAtMs === null ? '-' : isoTime(resumedAtMs);
    const what = [key, saleId ?? '-', String(purchases ?? '-'), topic];
    print(json ? JSON.stringify(half) : discardedLine(isoTime(discardedAtMs), resumedAt, ...what));
  }
}

function printMessage({
  broker,
  topic,
  queueId,
  queueOffset,
  storedAtMs,
  deliveries,
  properties,
  body,
}: Message): void {
  print(
    inLine(
      `${isoTime(storedAtMs)}  ${topic}  ${broker} queue ${queueId} offset ${queueOffset}  given before: ${deliveries}`,
    ),
  );
  for (const [name, value] of Object.entries(properties)) print(`    ${inLine(`${name}: ${value}`)}`);
  print(
    `    ${inLine(body.length > BODY_SHOWN ? `${body.slice(0, BODY_SHOWN)} … (${body.length} characters)` : body)}`,
  );
}

const groupLine = tableLine(32, 42, 10, 8);
const topicLine = tableLine(46, 12, 8, 10);
const halfLine = tableLine(8, 8, 24, 8, 11);
const discardedLine = tableLine(24, 24, 24, 8, 11);
const clientLine = tableLine(34, 24, 10);
const brokerLine = tableLine(16, 22, 10, 12, 12);
const countLine = tableLine(46, 10);

function printStatus({ brokers, groups, deadLetters, halves, discarded, producers }: MqStatus): void {
  print(brokerLine('broker', 'address', 'version', 'stored/s', 'read/s', 'disk'));
  for (const { name, address, down, version, putPerSecond, getPerSecond, diskUsed } of brokers) {
    const disk = `${Math.round(diskUsed * 100)} %`;
    const rates = [putPerSecond, getPerSecond].map((rate) => rate.toFixed(1));
    print(
      down === null ? brokerLine(name, address, version, ...rates, disk) : brokerLine(name, address, `down: ${down}`),
    );
  }
  print(`\n${groupLine('group', 'topic', 'lag', 'oldest', 'clients')}`);
  for (const { group, topic, lag, oldestMs, clients } of groups) {
    print(groupLine(group, topic, String(lag), ageOf(oldestMs), String(clients)));
  }
  print(`\n${countLine('dead letters', 'kept')}`);
  for (const { topic, kept } of deadLetters) print(countLine(topic, String(kept)));
  const oldest =
    halves.open === 0 ? '' : `, the oldest ${ageOf(halves.oldestMs)}, asked about ${halves.checksMost} times at most`;
  print(`\nopen half messages: ${halves.open}${halves.more ? ' or more' : ''}${oldest}; given up: ${discarded}`);
  for (const [topic, count] of Object.entries(producers)) print(`can be asked, ${inLine(topic)}: ${count}`);
}

/** Formats an age: `3 s`, `12 min`, `5 h`, or `-` for null. */
function ageOf(ms: number | null): string {
  if (ms === null) return '-';
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  return ms < 3_600_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
