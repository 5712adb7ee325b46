/**
 * Built-in kinds as Kubernetes 1.36 serves them, one a line:
 * group (`-`: core), version, kind, plural, singular, scope (N or C), short names, categories, subresources, verbs
 * (`*`: all eight), package of the type. `-` means none.
 */
export const KINDS = `
- v1 ConfigMap configmaps configmap N cm - - * core.v1
- v1 Endpoints endpoints endpoints N ep - - * core.v1
- v1 Event events event N ev - - * core.v1
- v1 LimitRange limitranges limitrange N limits - - * core.v1
- v1 Namespace namespaces namespace C ns - finalize,status create,delete,get,list,patch,update,watch core.v1
- v1 Node nodes node C no - status * core.v1
- v1 PersistentVolumeClaim persistentvolumeclaims persistentvolumeclaim N pvc - status * core.v1
- v1 PersistentVolume persistentvolumes persistentvolume C pv - status * core.v1
- v1 Pod pods pod N po all attach,binding,eviction,exec,log,portforward,status * core.v1
- v1 PodTemplate podtemplates podtemplate N - - - * core.v1
- v1 ReplicationController replicationcontrollers replicationcontroller N rc all scale,status * core.v1
- v1 ResourceQuota resourcequotas resourcequota N quota - status * core.v1
- v1 Secret secrets secret N - - - * core.v1
- v1 ServiceAccount serviceaccounts serviceaccount N sa - token * core.v1
- v1 Service services service N svc all status * core.v1
apps v1 ControllerRevision controllerrevisions controllerrevision N - - - * apps.v1
apps v1 DaemonSet daemonsets daemonset N ds all status * apps.v1
apps v1 Deployment deployments deployment N deploy all scale,status * apps.v1
apps v1 ReplicaSet replicasets replicaset N rs all scale,status * apps.v1
apps v1 StatefulSet statefulsets statefulset N sts all scale,status * apps.v1
networking.k8s.io v1 IngressClass ingressclasses ingressclass C - - - * networking.v1
networking.k8s.io v1 Ingress ingresses ingress N ing - status * networking.v1
networking.k8s.io v1 NetworkPolicy networkpolicies networkpolicy N netpol - - * networking.v1
discovery.k8s.io v1 EndpointSlice endpointslices endpointslice N - - - * discovery.v1
events.k8s.io v1 Event events event N ev - - * events.v1
coordination.k8s.io v1 Lease leases lease N - - - * coordination.v1
rbac.authorization.k8s.io v1 ClusterRoleBinding clusterrolebindings clusterrolebinding C - - - * rbac.v1
rbac.authorization.k8s.io v1 ClusterRole clusterroles clusterrole C - - - * rbac.v1
rbac.authorization.k8s.io v1 RoleBinding rolebindings rolebinding N - - - * rbac.v1
rbac.authorization.k8s.io v1 Role roles role N - - - * rbac.v1
admissionregistration.k8s.io v1 MutatingWebhookConfiguration mutatingwebhookconfigurations mutatingwebhookconfiguration C - api-extensions - * admissionregistration.v1
admissionregistration.k8s.io v1 ValidatingWebhookConfiguration validatingwebhookconfigurations validatingwebhookconfiguration C - api-extensions - * admissionregistration.v1
apiextensions.k8s.io v1 CustomResourceDefinition customresourcedefinitions customresourcedefinition C crd,crds api-extensions status * apiextensions.v1
authentication.k8s.io v1 SelfSubjectReview selfsubjectreviews selfsubjectreview C - - - create authentication.v1
authentication.k8s.io v1 TokenReview tokenreviews tokenreview C - - - create authentication.v1
authorization.k8s.io v1 LocalSubjectAccessReview localsubjectaccessreviews localsubjectaccessreview N - - - create authorization.v1
authorization.k8s.io v1 SelfSubjectAccessReview selfsubjectaccessreviews selfsubjectaccessreview C - - - create authorization.v1
authorization.k8s.io v1 SelfSubjectRulesReview selfsubjectrulesreviews selfsubjectrulesreview C - - - create authorization.v1
authorization.k8s.io v1 SubjectAccessReview subjectaccessreviews subjectaccessreview C - - - create authorization.v1
autoscaling v2 HorizontalPodAutoscaler horizontalpodautoscalers horizontalpodautoscaler N hpa all status * autoscaling.v2
batch v1 CronJob cronjobs cronjob N cj all status * batch.v1
batch v1 Job jobs job N - all status * batch.v1
storage.k8s.io v1 StorageClass storageclasses storageclass C sc - - * storage.v1
policy v1 PodDisruptionBudget poddisruptionbudgets poddisruptionbudget N pdb - status * policy.v1
scheduling.k8s.io v1 PriorityClass priorityclasses priorityclass C pc - - * scheduling.v1
node.k8s.io v1 RuntimeClass runtimeclasses runtimeclass C - - - * node.v1
`
