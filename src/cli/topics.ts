import { Command } from 'commander';
import { applyTopics, type TopicsTarget } from '../rocketmq/admin/apply-topics.js';
import { DEFAULT_CLUSTER } from '../rocketmq/admin/broker-state.js';
import { readTopicLists } from '../rocketmq/admin/topic-lists.js';
import { CliError } from './cli-error.js';

interface TopicsFlags {
  readonly namesrv?: string;
  readonly cluster: string;
  readonly json?: boolean;
}

export function topicsCommand(): Command {
  return new Command('topics')
    .description('create the topics and consumer groups in RocketMQ and read them back')
    .option('--namesrv <host:port>', 'name server (default: NAMESRV_ADDR)')
    .option('--cluster <name>', 'broker cluster', DEFAULT_CLUSTER)
    .option('--json', 'one JSON line')
    .action(createTopics);
}

async function createTopics({ namesrv, cluster, json }: TopicsFlags): Promise<void> {
  const namesrvAddr = namesrv ?? process.env.NAMESRV_ADDR;
  if (!namesrvAddr) throw new CliError('NAMESRV_ADDR is not set; name the name server, such as 127.0.0.1:9876.');
  const target: TopicsTarget = { namesrvAddr, cluster };
  const outcome = await applyTopics(target, readTopicLists());
  if (json) console.log(JSON.stringify({ result: outcome, ...target }));
  else if (outcome === 'unchanged') console.log(`All topics and groups are in place at ${namesrvAddr}.`);
  else console.log(`Topics and groups are created at ${namesrvAddr} and were read back.`);
}
