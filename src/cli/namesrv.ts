import { loadConfig } from '../core/config/load.js';
import { UsageError } from './cli-error.js';

/** The name servers to ask: those of the flag, else those that are set. @throws UsageError where neither names one */
export function namesrvOf(flag: string | undefined): string {
  const namesrv = flag ?? loadConfig(['repair'], process.env).repair.namesrv;
  if (namesrv === '') throw new UsageError('give --namesrv host:port or set NAMESRV_ADDR, such as 127.0.0.1:9876.');
  return namesrv;
}
