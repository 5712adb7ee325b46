/** Asks an API server whether it would allow something, as `kubectl auth can-i` does. */
import { ApiError, type Client } from '@seamark/kube'

export interface Attributes {
  readonly group: string
  readonly resource: string
  readonly verb: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
}

interface Options {
  readonly deadlineMs: number
  readonly signal: AbortSignal
}

const PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'

export async function mayDo(client: Client, resourceAttributes: Attributes, options: Options): Promise<boolean> {
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  }
  const headers = { 'content-type': 'application/json' }
  const response = await client.request({
    method: 'POST',
    path: PATH,
    headers,
    body: JSON.stringify(review),
    ...options,
  })
  if (response.status >= 300)
    throw new ApiError('REVIEW', `${PATH} answers ${response.status}`, response.status, {
      kind: 'Status',
      apiVersion: 'v1',
    })
  const { status } = JSON.parse(response.body.toString('utf8')) as { status?: { allowed?: boolean } }
  return status?.allowed === true
}
