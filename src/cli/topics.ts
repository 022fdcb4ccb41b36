import { Command } from 'commander';
import type { TopicsTarget } from '../rocketmq/admin/apply-topics.js';
import { applyTopicsToCluster } from '../../deploy/local/stack/cluster-topics.js';
import { LOCAL_CLUSTER } from '../../deploy/local/stack/servers/proxy.js';
import { openStack } from '../../deploy/local/stack/stack.js';
import { reportStackError } from '../../deploy/local/stack-failure.js';
import { progressStyle, showProgress } from '../../deploy/local/stack-progress.js';

interface TopicsFlags {
  readonly namesrv?: string;
  readonly cluster: string;
  readonly json?: boolean;
}

/** `seckill topics`: creates what config/topics.json and config/groups.json list, and reads it back. */
export function topicsCommand(): Command {
  return new Command('topics')
    .description('create the topics and consumer groups in RocketMQ and read them back')
    .option('--namesrv <host:port>', 'name server (default: NAMESRV_ADDR, else the local stack)')
    .option('--cluster <name>', 'broker cluster', LOCAL_CLUSTER)
    .option('--json', 'lines of JSON for programs')
    .action(createTopics);
}

async function createTopics({ namesrv, cluster, json }: TopicsFlags): Promise<void> {
  await reportStackError(json, async () => {
    const namesrvAddr = namesrv ?? process.env.NAMESRV_ADDR ?? openStack().env().NAMESRV_ADDR;
    const target: TopicsTarget = { namesrvAddr, cluster };
    const outcome = await showProgress(progressStyle(json === true), ['artifacts'], (onProgress) =>
      applyTopicsToCluster(target, { env: process.env, onProgress }),
    );
    if (json) process.stdout.write(`${JSON.stringify({ result: outcome, ...target })}\n`);
    else if (outcome === 'unchanged') console.log(`All topics and groups are in place at ${namesrvAddr}.`);
    else console.log(`Topics and groups are created at ${namesrvAddr} and were read back.`);
  });
}
