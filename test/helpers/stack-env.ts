const NAMES = [
  ...(['MYSQL_URL', 'REDIS_URL', 'ROCKETMQ_ENDPOINT', 'NAMESRV_ADDR', 'JWT_SECRET', 'MESSAGE_KEYS'] as const),
  ...(['ROCKETMQ_ACCESS_KEY', 'ROCKETMQ_ACCESS_SECRET'] as const),
  ...(['ADMISSION_SIGN_KEYS', 'ADMISSION_SEAL_KEYS', 'PAYMENT_WEBHOOK_SECRET'] as const),
];

/** Settings of servers that are reached over TLS, or with a password from a file. */
const IF_SET = /^(?:MYSQL|REDIS|ROCKETMQ)_(?:TLS|PASSWORD)/;

/** Addresses and access of the servers of this test run. */
export type StackEnv = Record<(typeof NAMES)[number], string>;

/**
 * Returns the servers that tests use, from the environment.
 * @throws if a server is not named; `npm test` starts a private stack and names it
 */
export function stackEnv(): StackEnv {
  const missing = NAMES.filter((name) => !process.env[name]);
  if (missing.length > 0) {
    throw new Error(`no servers to test with: ${missing.join(', ')} not set. Run \`npm test\`, which starts its own.`);
  }
  const more = Object.keys(process.env).filter((name) => IF_SET.test(name));
  return Object.fromEntries([...NAMES, ...more].map((name) => [name, process.env[name]])) as StackEnv;
}
