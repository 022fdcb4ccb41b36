const NAMES = [
  ...(['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT', 'NAMESRV_ADDR', 'JWT_SECRET', 'MESSAGE_KEYS'] as const),
  ...(['ROCKETMQ_ACCESS_KEY', 'ROCKETMQ_ACCESS_SECRET'] as const),
  ...(['ADMISSION_SIGN_KEYS', 'ADMISSION_SEAL_KEYS', 'PAYMENT_WEBHOOK_SECRET'] as const),
];

/** What an environment says of servers that are reached by TLS, or with a password from a file. */
const IF_SET = /^(?:MYSQL|REDIS|ROCKETMQ)_(?:TLS|PASSWORD)/;

/** Where the servers of this test run are, and how they are reached. */
export type StackEnv = Record<(typeof NAMES)[number], string>;

/**
 * The servers that tests use, from the environment.
 * @throws when one is not named; `npm test` starts a stack of its own and names it
 */
export function stackEnv(): StackEnv {
  const missing = NAMES.filter((name) => !process.env[name]);
  if (missing.length > 0) {
    throw new Error(`no servers to test with: ${missing.join(', ')} not set. Run \`npm test\`, which starts its own.`);
  }
  const more = Object.keys(process.env).filter((name) => IF_SET.test(name));
  return Object.fromEntries([...NAMES, ...more].map((name) => [name, process.env[name]])) as StackEnv;
}
