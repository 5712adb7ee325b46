/**
 * What a person types and what kubectl prints, in the order it is typed: later commands work on what earlier ones made.
 *
 * The outputs are those of kube-apiserver 1.36; `below` gives what an older kubectl prints or does not support, the lowest
 * bound that holds wins. Placeholders are explained in pattern.ts.
 */
export interface Expected {
  /** @default 0; not looked at for streams, which end by a signal */
  exit?: number
  /** @default '' */
  stdout?: string
  /** @default '' */
  stderr?: string
}

export interface Command extends Expected {
  /** After `kubectl `. */
  run: string
  /** It never ends by itself: cm1 is touched until `stdout` matches. */
  isStream?: true
  /** For kubectl 1.N with N below the bound. */
  below?: readonly (Expected & { minor: number })[]
}

const deletion = (run: string, what: string): Command => ({
  run,
  stdout: `${what} deleted from default namespace`,
  below: [{ minor: 34, stdout: `${what} deleted` }],
})

const unknownBelow = (minor: number, stderr: string) => [{ minor, exit: 1, stderr }]

const namespaces = `
NAME STATUS AGE
default Active <age>
kube-node-lease Active <age>
kube-public Active <age>
kube-system Active <age>`

const oneConfigMap = `
NAME DATA AGE
cm1 1 <age>
kube-root-ca.crt 1 <age>`

const managedByCreate = `
  managedFields:
  - apiVersion: v1
    fieldsType: FieldsV1
    fieldsV1:
      f:data:
        .: {}
        f:a: {}
    manager: kubectl-create
    operation: Update
    time: <time>`

const yamlOf = (name: string, value: string, managedFields: string, resourceVersion: string) => `
apiVersion: v1
data:
  a: ${value}
kind: ConfigMap
metadata:
  creationTimestamp: <time>${managedFields}
  name: ${name}
  namespace: default${resourceVersion}
  uid: <uid>`

const withVersion = '\n  resourceVersion: "<n>"'

const missingAnnotation =
  'Warning: resource configmaps/cm1 is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.'

const acceptedByWidgets =
  'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml'

const forced =
  'arning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.\nError from server (NotFound): error when deleting "svc.yaml": services "s1" not found'

const endpointsDeprecated = 'Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice'

export const commands: readonly Command[] = [
  {
    run: 'version',
    stdout: 'Client Version: <any>\nKustomize Version: <any>\nServer Version: v1.<any>',
    stderr: '<more>',
    below: [{ minor: 28, stdout: 'Client Version: <any>\n<more>\nServer Version: <any>', stderr: '<more>' }],
  },
  { run: 'get ns', stdout: namespaces },
  { run: 'get ns', stdout: namespaces },
  { run: 'create ns demo', stdout: 'namespace/demo created' },
  { run: 'create -f cm.yaml', stdout: 'configmap/cm1 created' },
  { run: 'get cm', stdout: oneConfigMap },
  { run: 'get cm cm1', stdout: 'NAME DATA AGE\ncm1 1 <age>' },
  {
    run: 'get cm cm1 -o yaml',
    stdout: yamlOf('cm1', '"1"', '', withVersion),
    below: [{ minor: 21, stdout: yamlOf('cm1', '"1"', managedByCreate, withVersion) }],
  },
  { run: 'get cm -A -l a=b --field-selector metadata.name=cm1', stderr: 'No resources found' },
  {
    run: 'get all',
    stdout: 'NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE\nservice/kubernetes ClusterIP <ip> <none> 443/TCP <age>',
  },
  { run: 'get widgets.example.dev -A -o wide --sort-by=.metadata.name', stderr: 'No resources found' },
  { run: 'get cm --chunk-size=1', stdout: oneConfigMap },
  { run: 'get nosuch', exit: 1, stderr: 'error: the server doesn\'t have a resource type "nosuch"' },
  { run: 'get cm nosuch', exit: 1, stderr: 'Error from server (NotFound): configmaps "nosuch" not found' },
  { run: 'get cm -w', isStream: true, stdout: `${oneConfigMap}\ncm1 1 <age>\n<more>` },
  { run: 'get cm cm1 -w', isStream: true, stdout: 'NAME DATA AGE\ncm1 1 <age>\ncm1 1 <age>\n<more>' },
  { run: 'get cm --watch-only', isStream: true, stdout: 'NAME DATA AGE\ncm1 1 <age>\n<more>' },
  {
    run: 'get cm -w -o json',
    isStream: true,
    stdout:
      '{\n<more>\n        "name": "cm1",\n<more>\n}\n{\n<more>\n            "touched": "<word>"\n<more>\n}\n<more>',
  },
  {
    run: 'get cm -w --output-watch-events',
    isStream: true,
    stdout: 'EVENT NAME DATA AGE\nADDED cm1 1 <age>\nADDED kube-root-ca.crt 1 <age>\nMODIFIED cm1 1 <age>\n<more>',
  },
  { run: 'apply -f wd.yaml', stdout: 'widget.example.dev/w1 created' },
  { run: 'apply -f wd.yaml', stdout: 'widget.example.dev/w1 unchanged' },
  { run: 'apply -f wd2.yaml', stdout: 'widget.example.dev/w1 configured' },
  { run: 'apply -f wd2.yaml --dry-run=server', stdout: 'widget.example.dev/w1 unchanged (server dry run)' },
  { run: 'apply -f dep.yaml', stdout: 'deployment.apps/d1 created' },
  { run: 'apply -f dep2.yaml', stdout: 'deployment.apps/d1 configured' },
  { run: 'apply -f cm.yaml', stdout: 'configmap/cm1 configured', stderr: missingAnnotation },
  { run: 'apply -f svc.yaml', stdout: 'service/s1 created' },
  { run: 'apply -f ing.yaml', stdout: 'ingress.networking.k8s.io/i1 created' },
  { run: 'apply -f cm.yaml --validate=false', stdout: 'configmap/cm1 unchanged' },
  { run: 'diff -f cm.yaml' },
  { run: 'apply --server-side -f wd.yaml', stdout: 'widget.example.dev/w1 serverside-applied' },
  {
    run: 'apply --server-side --force-conflicts --field-manager=me -f cm.yaml',
    stdout: 'configmap/cm1 serverside-applied',
  },
  {
    run: 'apply --server-side --dry-run=server -f cm.yaml',
    stdout: 'configmap/cm1 serverside-applied (server dry run)',
  },
  { run: 'edit cm cm1', stdout: 'configmap/cm1 edited' },
  { run: 'edit widget w1', stdout: 'widget.example.dev/w1 edited' },
  { run: `patch cm cm1 -p '{"data":{"z":"1"}}'`, stdout: 'configmap/cm1 patched' },
  { run: `patch cm cm1 --type=merge -p '{"data":{"z":"2"}}'`, stdout: 'configmap/cm1 patched' },
  {
    run: `patch cm cm1 --type=json -p '[{"op":"add","path":"/data/y","value":"1"}]'`,
    stdout: 'configmap/cm1 patched',
  },
  { run: `patch widget w1 --type=merge -p '{"spec":{"size":5}}'`, stdout: 'widget.example.dev/w1 patched' },
  {
    run: `patch widget w1 -p '{"spec":{"size":5}}'`,
    exit: 1,
    stderr: `error: application/strategic-merge-patch+json is not supported by example.dev/v1, Kind=Widget: ${acceptedByWidgets}`,
    below: [{ minor: 26, exit: 1, stderr: `Error from server (UnsupportedMediaType): ${acceptedByWidgets}` }],
  },
  {
    run: `patch widget w1 --subresource=status --type=merge -p '{"status":{"ok":true}}'`,
    stdout: 'widget.example.dev/w1 patched',
    below: unknownBelow(24, "Error: unknown flag: --subresource\nSee 'kubectl patch --help' for usage."),
  },
  { run: 'label cm cm1 x=y', stdout: 'configmap/cm1 labeled' },
  {
    run: 'annotate widget w1 x=y',
    stdout: 'widget.example.dev/w1 annotated',
    below: [
      { minor: 28, stdout: 'widget.example.dev/w1 annotate' },
      { minor: 21, stdout: 'widget.example.dev/w1 annotated' },
    ],
  },
  { run: 'scale deployment d1 --replicas=3', stdout: 'deployment.apps/d1 scaled' },
  { run: 'set image deployment/d1 c=nginx:3', stdout: 'deployment.apps/d1 image updated' },
  { run: 'replace -f cm.yaml', stdout: 'configmap/cm1 replaced' },
  {
    run: 'rollout status deployment/d1 --timeout=1s',
    exit: 1,
    stdout: 'Waiting for deployment spec update to be observed...',
    stderr: 'error: timed out waiting for the condition',
  },
  {
    run: 'wait --for=condition=Ready widget/w1 --timeout=1s',
    exit: 1,
    stderr: 'error: timed out waiting for the condition on widgets/w1',
  },
  {
    run: "wait '--for=jsonpath={.spec.size}=5' widget/w1 --timeout=1s",
    stdout: 'widget.example.dev/w1 condition met',
    below: unknownBelow(23, 'error: unrecognized condition: "jsonpath={.spec.size}=5"'),
  },
  {
    run: 'wait --for=delete widget/nosuch --timeout=1s',
    below: unknownBelow(23, 'error: no matching resources found'),
  },
  {
    run: 'wait --for=create widget/w1 --timeout=1s',
    stdout: 'widget.example.dev/w1 condition met',
    below: unknownBelow(31, 'error: unrecognized condition: "create"'),
  },
  {
    run: 'describe cm cm1',
    stdout: `
Name: cm1
Namespace: default
Labels: <none>
Annotations: <none>

Data
====
a:
----
1
<more>
Events: <none>`,
  },
  {
    run: 'describe ns demo',
    stdout: `
Name: demo
Labels: kubernetes.io/metadata.name=demo
Annotations: <none>
Status: Active

No resource quota.

No LimitRange resource.`,
  },
  {
    run: 'describe widget w1',
    stdout: `
Name: w1
Namespace: default
Labels: <none>
Annotations: x: y
API Version: example.dev/v1
Kind: Widget
Metadata:
  Creation Timestamp: <time>
  Generation: 5
  Resource Version: <n>
  UID: <uid>
Spec:
  Size: 5
Status:
  Ok: true
Events: <none>`,
    below: [
      {
        minor: 21,
        stdout: `
Name: w1
Namespace: default
Labels: <none>
Annotations: x: y
API Version: example.dev/v1
Kind: Widget
Metadata:
  Creation Timestamp: <time>
  Generation: 5
  Managed Fields:
<more>
    Manager: kubectl-annotate
<more>
  Resource Version: <n>
  UID: <uid>
Spec:
  Size: 5
Events: <none>`,
      },
    ],
  },
  {
    run: 'describe ing i1',
    stdout: `
Name: i1
Labels: <none>
Namespace: default
Address:
Ingress Class: <none>
Default backend: <default>
Rules:
  Host Path Backends
  ---- ---- --------
  a.example.dev
                 / s1:80 (<none>)
Annotations: <none>
Events: <none>`,
    below: [
      {
        minor: 31,
        stdout: `
Name: i1
Labels: <none>
Namespace: default
Address:
Ingress Class: <none>
Default backend: <default>
Rules:
  Host Path Backends
  ---- ---- --------
  a.example.dev
                 / s1:80 (<error: endpoints "s1" not found>)
Annotations: <none>
Events: <none>`,
        stderr: endpointsDeprecated,
      },
      {
        minor: 21,
        stdout: `
Name: i1
Namespace: default
Address:
Default backend: default-http-backend:80 (<error: endpoints "default-http-backend" not found>)
Rules:
  Host Path Backends
  ---- ---- --------
  a.example.dev
                 / s1:80 (<error: endpoints "s1" not found>)
Annotations: <none>
Events: <none>`,
        stderr: endpointsDeprecated,
      },
    ],
  },
  {
    run: 'describe svc s1',
    stdout: `
Name: s1
Namespace: default
Labels: a=b
Annotations: <none>
Selector: a=b
Type: ClusterIP
IP Family Policy: SingleStack
IP Families: IPv4
IP: <ip>
IPs: <ip>
Port: <unset> 80/TCP
TargetPort: 80/TCP
Endpoints: <any>
Session Affinity: None
<more>
Events: <none>`,
    stderr: '<more>',
  },
  {
    run: 'describe deployment d1',
    stdout: `
Name: d1
Namespace: default
CreationTimestamp: <any>
Labels: <none>
Annotations: <none>
Selector: a=b
Replicas: 3 desired | 0 updated | 0 total | 0 available | 0 unavailable
StrategyType: RollingUpdate
MinReadySeconds: 0
RollingUpdateStrategy: 25% max unavailable, 25% max surge
Pod Template:
  Labels: a=b
  Containers:
   c:
    Image: nginx:3
    Port: <none>
    Host Port: <none>
    Environment: <none>
    Mounts: <none>
  Volumes: <none>
<more>
Events: <none>`,
  },
  {
    run: 'events',
    stderr: 'No events found in default namespace.',
    below: unknownBelow(23, 'Error: unknown command "events" for "kubectl"\nRun \'kubectl --help\' for usage.'),
  },
  {
    run: 'api-resources',
    stdout: `
NAME SHORTNAMES APIVERSION NAMESPACED KIND
<more>
configmaps cm v1 true ConfigMap
<more>
namespaces ns v1 false Namespace
<more>
services svc v1 true Service
<more>
customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition
<more>
deployments deploy apps/v1 true Deployment
<more>
leases coordination.k8s.io/v1 true Lease
<more>
widgets wd example.dev/v1 true Widget
<more>
ingresses ing networking.k8s.io/v1 true Ingress
<more>
clusterroles rbac.authorization.k8s.io/v1 false ClusterRole
<more>`,
  },
  {
    run: 'api-versions',
    stdout: `
admissionregistration.k8s.io/v1
apiextensions.k8s.io/v1
<more>
apps/v1
authentication.k8s.io/v1
authorization.k8s.io/v1
<more>
coordination.k8s.io/v1
discovery.k8s.io/v1
events.k8s.io/v1
example.dev/v1
<more>
networking.k8s.io/v1
<more>
rbac.authorization.k8s.io/v1
<more>
v1`,
  },
  {
    run: 'cluster-info',
    stdout: '<any>Kubernetes <any> is running at <any>https://<any>\n<more>',
  },
  {
    run: 'explain configmap',
    stdout: `
KIND: ConfigMap
VERSION: v1

DESCRIPTION:
<more>
FIELDS:
  apiVersion <string>
<more>
  binaryData <map[string]string>
<more>
  data <map[string]string>
<more>
  immutable <boolean>
<more>
  kind <string>
<more>
  metadata <word>
<more>`,
  },
  {
    run: 'explain widget.spec',
    stdout: `
GROUP: example.dev
KIND: Widget
VERSION: v1

FIELD: spec <Object>
<more>
DESCRIPTION:
    What is wanted.

FIELDS:
  color <string>
<more>
    Its paint.

  size <integer> -required-
    How big.

  tags <[]string>
    <no description>`,
    below: [
      {
        minor: 27,
        stdout: `
KIND: Widget
VERSION: example.dev/v1

RESOURCE: spec <Object>

DESCRIPTION:
     What is wanted.

FIELDS:
   color <string>
     Its paint.

   size <integer> -required-
     How big.

   tags <[]string>`,
      },
    ],
  },
  {
    run: 'explain widget --recursive',
    stdout: `
<more>
DESCRIPTION:
    Widget is a thing of a certain size.

FIELDS:
  apiVersion <string>
  kind <string>
  metadata <word>
    annotations <map[string]string>
    creationTimestamp <string>
    deletionGracePeriodSeconds <integer>
    deletionTimestamp <string>
    finalizers <[]string>
<more>
  spec <Object>
    color <string>
<more>
    size <any>
    tags <[]string>
  status <Object>
    conditions <[]Object>
      status <string>
      type <string>
    ok <boolean>
    size <integer>`,
  },
  { run: 'get --raw /healthz', stdout: 'ok' },
  { run: 'auth can-i create cm', stdout: 'yes' },
  {
    run: 'auth whoami',
    stdout: 'ATTRIBUTE VALUE\nUsername admin\nGroups [system:masters system:authenticated]\n<more>',
    below: [
      { minor: 28, exit: 1, stderr: 'error: the selfsubjectreviews API is not enabled in the cluster\n<more>' },
      { minor: 21, exit: 1, stderr: 'error: unknown command "whoami"\nSee \'kubectl auth -h\' for help and examples' },
    ],
  },
  {
    run: 'create cm gen --from-literal=a=b --dry-run=server -o yaml',
    stdout: yamlOf('gen', 'b', '', ''),
    below: [{ minor: 21, stdout: yamlOf('gen', 'b', managedByCreate, '') }],
  },
  {
    run: 'create token default',
    stdout: '<word>.<word>.<word>',
    below: unknownBelow(24, 'Error: must specify one of -f and -k\n<more>'),
  },
  deletion('delete cm cm1', 'configmap "cm1"'),
  deletion('delete widget w1 --wait=false', 'widget.example.dev "w1"'),
  deletion('delete deployment d1 --cascade=foreground', 'deployment.apps "d1"'),
  deletion('delete svc -l a=b', 'service "s1"'),
  deletion('delete ing --all', 'ingress.networking.k8s.io "i1"'),
  { run: 'delete ns demo', stdout: 'namespace "demo" deleted' },
  { run: 'delete cm nosuch --ignore-not-found' },
  {
    run: 'delete -f svc.yaml --grace-period=0 --force',
    exit: 1,
    stderr: `W${forced}`,
    below: [{ minor: 23, exit: 1, stderr: `w${forced}` }],
  },
]

/** What `command` should do when this kubectl runs it. */
export function expectedOf(command: Command, minor: number): Expected {
  const older = command.below?.filter((expected) => minor < expected.minor) ?? []
  return older.toSorted((left, right) => left.minor - right.minor)[0] ?? command
}
