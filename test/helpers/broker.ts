import { brokerAccessIn, type StackEnv } from '../../deploy/local/stack/settings.js';
import type { Stack } from '../../deploy/local/stack/stack.js';
import type { RemotingAddress } from '../../src/rocketmq/admin/remoting.js';
import type { BrokerAccess, BrokerCredentials } from '../../src/rocketmq/credentials.js';

type BrokerEnv = Pick<StackEnv, 'ROCKETMQ_ENDPOINT' | 'ROCKETMQ_ACCESS_KEY' | 'ROCKETMQ_ACCESS_SECRET'>;

/** Returns the broker user of the programs in an environment. */
export const credentialsIn = (env: Omit<BrokerEnv, 'ROCKETMQ_ENDPOINT'>): BrokerCredentials => ({
  accessKey: env.ROCKETMQ_ACCESS_KEY,
  accessSecret: env.ROCKETMQ_ACCESS_SECRET,
});

/** Returns the RocketMQ user and TLS settings of an environment. */
export const accessIn = (env: Omit<BrokerEnv, 'ROCKETMQ_ENDPOINT'>): BrokerAccess => ({
  ...brokerAccessIn(env),
  credentials: credentialsIn(env),
});

/** Returns the connection settings of a broker client. */
export const brokerOf = (env: BrokerEnv) => ({ endpoint: env.ROCKETMQ_ENDPOINT, ...accessIn(env) });

/** Returns the admin port of the broker of a stack. */
export const adminPortOf = (stack: Pick<Stack, 'ports' | 'env'>): RemotingAddress => {
  const { credentials, adminTls } = accessIn(stack.env());
  return { host: '127.0.0.1', port: stack.ports.broker, credentials, ...(adminTls ? { tls: adminTls } : {}) };
};
