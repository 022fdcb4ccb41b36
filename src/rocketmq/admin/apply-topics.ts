import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { masterBrokers, parseAddress, readGroups, readTopics } from './broker-state.js';
import { runMqadmin, type AdminSite } from '../../../deploy/local/stack/mqadmin.js';
import { reasonOf } from '../../../deploy/local/stack/probes.js';
import type { RemotingAddress } from './remoting.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import { missingFrom } from './topic-check.js';
import type { TopicLists } from './topic-lists.js';
import { waitUntil } from '../../../deploy/local/stack/wait-until.js';

/** The broker stores a list one entry after the other and may answer before the last is visible. */
const READ_BACK_TIMEOUT_MS = 5_000;
/** The admin tool gives a name server 3 s from its own start on, which on a busy machine is over before it has asked. */
const ATTEMPTS_MAX = 4;

export interface TopicsTarget {
  /** `host:port` of a name server; of several, divided by `;`, the first is asked. */
  readonly namesrvAddr: string;
  readonly cluster: string;
}

/** `unchanged`: all brokers had all of it before. */
export type ApplyOutcome = 'created' | 'unchanged';

/**
 * Brings topics and groups to every master broker of a cluster and reads them back: the admin tool exits 0 whatever
 * happened. Safe to repeat; what is there and not in the lists stays.
 * @throws StackError when a broker does not have all of it in the end
 */
export async function applyTopics(
  target: TopicsTarget,
  lists: TopicLists,
  admin: () => Promise<AdminSite>,
  signal?: AbortSignal,
): Promise<ApplyOutcome> {
  const namesrv = firstAddress(target.namesrvAddr);
  if ((await findMissing(namesrv, target, lists)).length === 0) return 'unchanged';

  const site = await admin();
  let missing: string[] = [];
  const isComplete = async (): Promise<boolean> => {
    missing = await findMissing(namesrv, target, lists);
    return missing.length === 0;
  };
  let complaints = '';
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    complaints = await createAll(target, lists, site, signal);
    const readBack = { timeoutMs: READ_BACK_TIMEOUT_MS, everyMs: 200, signal };
    if (await waitUntil(isComplete, readBack)) return 'created';
    if (complaints === '') break; // it has done what it could
  }
  const why = complaints === '' ? '' : ` (${complaints})`;
  throw new StackError(`RocketMQ did not take ${missing.join(', ')}${why}; see ${site.logFile}.`);
}

/** Both calls at once: topics and groups are kept apart in the broker, and each call costs a JVM. */
async function createAll(
  { namesrvAddr, cluster }: TopicsTarget,
  { topics, groups }: TopicLists,
  site: AdminSite,
  signal?: AbortSignal,
): Promise<string> {
  mkdirSync(site.workDir, { recursive: true });
  const [topicsFile, groupsFile] = [join(site.workDir, 'topics.json'), join(site.workDir, 'groups.json')];
  writeFileSync(topicsFile, JSON.stringify(topics));
  writeFileSync(groupsFile, JSON.stringify(groups));
  const where = ['-n', namesrvAddr, '-c', cluster, '-f'];
  const complaints = await Promise.all([
    runMqadmin(site, ['updateTopicList', ...where, topicsFile], signal),
    runMqadmin(site, ['updateSubGroupList', ...where, groupsFile], signal),
  ]);
  return complaints.filter((complaint) => complaint !== null).join('; ');
}

async function findMissing(namesrv: RemotingAddress, target: TopicsTarget, lists: TopicLists): Promise<string[]> {
  try {
    const brokers = await masterBrokers(namesrv, target.cluster);
    if (brokers.length === 0) throw new Error(`no broker of cluster ${target.cluster} is registered`);
    const missing = await Promise.all(
      brokers.map(async (broker) => {
        const [topics, groups] = await Promise.all([readTopics(broker), readGroups(broker)]);
        return missingFrom({ topics, groups }, lists);
      }),
    );
    return [...new Set(missing.flat())];
  } catch (error) {
    throw new StackError(
      `Cannot read topics by way of the name server ${target.namesrvAddr} (${reasonOf(error)}); ` +
        'check NAMESRV_ADDR, or start the local stack with `stack up`.',
      { cause: error },
    );
  }
}

function firstAddress(namesrvAddr: string): RemotingAddress {
  try {
    return parseAddress(namesrvAddr.split(';')[0] ?? '');
  } catch (error) {
    throw new StackError(`NAMESRV_ADDR must be host:port, not "${namesrvAddr}"; correct it.`, { cause: error });
  }
}
