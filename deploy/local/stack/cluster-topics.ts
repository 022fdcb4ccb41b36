import { join } from 'node:path';
import { applyTopics, type ApplyOutcome, type TopicsTarget } from '../../../src/rocketmq/admin/apply-topics.js';
import { DEFAULT_ARTIFACTS_DIR, DEFAULT_DIR } from './paths.js';
import type { OnProgress } from './progress.js';
import { readTopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import { toolsOnce } from './tools.js';

/**
 * Creates the topics and groups of config/ in any RocketMQ cluster and reads them back from each broker.
 * @throws StackError with one sentence
 */
export function applyTopicsToCluster(
  target: TopicsTarget,
  options: { env: NodeJS.ProcessEnv; onProgress: OnProgress },
): Promise<ApplyOutcome> {
  const tools = toolsOnce(DEFAULT_ARTIFACTS_DIR, options.env, options.onProgress);
  return applyTopics(target, readTopicLists(), async () => {
    const { java, artifacts } = await tools();
    return {
      java,
      rocketmqLib: artifacts.rocketmqLib,
      workDir: join(DEFAULT_DIR, 'tmp', 'mqadmin'),
      logFile: join(DEFAULT_DIR, 'log', 'mqadmin.log'),
    };
  });
}
