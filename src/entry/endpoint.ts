/** What buyers ask for, as the rules of the entry name it. Admin, probes and webhooks are never refused by a layer. */
export const ENDPOINTS = ['purchase', 'status', 'sale', 'order'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];
