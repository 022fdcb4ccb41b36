export interface WelcomeFacts {
  readonly saleId: string;
  readonly title: string;
  /** The sale page, signed in by the part after its `#`, and the operators' console. */
  readonly buyerUrl: string;
  readonly consoleUrl: string;
  /** Console token that may change everything. */
  readonly adminToken: string;
  /** Whether simulated buyers come, and whether faults are injected. */
  readonly traffic: boolean;
  readonly faults: boolean;
  /** Whether the payment provider is the simulator. */
  readonly isSimulated: boolean;
}

/** Tells a newcomer where to look and how to stop. `--json` prints more addresses and tokens. */
export const welcome = ({ saleId, title, buyerUrl, consoleUrl, adminToken, ...facts }: WelcomeFacts): string => `
Seckill is up. Sale ${saleId} (“${title}”) is open.

Page:    ${buyerUrl}
Console: ${consoleUrl}
Token:   ${adminToken}

The page has a buyer signed in. Sign in to the console with the token. To buy with curl, see docs/api.md.
${facts.isSimulated ? 'Payments are simulated: no money moves.\n' : ''}${facts.traffic ? trafficNote(facts.faults) : ''}
Ctrl-C stops everything in order and keeps the data.`;

const trafficNote = (faults: boolean): string => `
Simulated buyers come now, to their own sales: a hot sale each minute, a steady sale in waves, a scarce sale, and a sale with a
waiting room. Unpaid orders expire after 45 s (ORDER_PAYMENT_WINDOW_MS). Every 30 s a line says what buyers saw.${faults ? FAULTS : ''} At the end Redis and
MySQL are compared.
`;

const FAULTS = ` The demo breaks something every
minute. A line that begins with "Fault:" says what, and where to look.`;
