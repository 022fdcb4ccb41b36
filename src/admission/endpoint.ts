/** What buyers ask for, as the rules name it. Admin, probes and webhooks are not among them: no layer refuses those. */
export const ENDPOINTS = ['purchase', 'status', 'sale', 'order'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];
