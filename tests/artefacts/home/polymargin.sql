BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0005');
CREATE TABLE aliases (
	model_id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	version_id VARCHAR(32) NOT NULL, 
	revision INTEGER NOT NULL, 
	PRIMARY KEY (model_id, name), 
	FOREIGN KEY(model_id) REFERENCES models (id) ON DELETE CASCADE, 
	FOREIGN KEY(version_id) REFERENCES model_versions (id) ON DELETE CASCADE
);
CREATE TABLE checkpoints (
	job_id VARCHAR(32) NOT NULL, 
	attempt INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	seconds DOUBLE NOT NULL, 
	path VARCHAR(255) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	PRIMARY KEY (job_id), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
CREATE TABLE datasets (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	format VARCHAR(16) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	path VARCHAR(255), 
	kind VARCHAR(16), 
	n_rows BIGINT, 
	n_train BIGINT, 
	n_classes BIGINT, 
	n_features BIGINT, 
	nnz BIGINT, 
	statistics JSON, 
	error JSON, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "datasets" VALUES('18ea81de2dcef87f3d380ea13bd27fed','letters','svmlight','ready','26d8319d38afbf5d4b578bcb6dc447ce8ba3a7b1d003caebccd1ab26961a0564',288,'datasets/18ea81de2dcef87f3d380ea13bd27fed/arrays-1','sparse',24,24,3,6,48,'{"n_rows": 24, "n_train": 24, "n_test": 0, "n_classes": 3, "n_features": 6, "nnz": 48, "empty_rows": 0, "weights": null, "labels_per_row": null, "classes": [{"label": "a", "train": 8, "test": 0}, {"label": "b", "train": 8, "test": 0}, {"label": "c", "train": 8, "test": 0}], "test_only_labels": []}','null',1.79539019274100351331e+09);
INSERT INTO "datasets" VALUES('18ea81ea5a78dfe3a9c1b431e9757dd1','foods','jsonl','ready','c2601218c027c527f50cf1d9a0415ab60f11f03649e3f38c9192a11857d8dc7e',1120,'datasets/18ea81ea5a78dfe3a9c1b431e9757dd1/arrays-1','text',24,24,3,NULL,NULL,'{"n_rows": 24, "n_train": 24, "n_test": 0, "n_classes": 3, "n_features": null, "nnz": null, "empty_rows": 0, "weights": null, "labels_per_row": null, "classes": [{"label": "fruit", "train": 8, "test": 0}, {"label": "vegetable", "train": 8, "test": 0}, {"label": "water", "train": 8, "test": 0}], "test_only_labels": []}','null',1.79539024500899600982e+09);
INSERT INTO "datasets" VALUES('18ea81ea7a4b8fa58f83f075049076f9','shapes','csv','ready','9aac66c5ef10c7c29c8d8bd38914ee95d3eb89f8c4e6c3932d2eb329c62a79c6',199,'datasets/18ea81ea7a4b8fa58f83f075049076f9/arrays-1','sparse',20,20,2,2,40,'{"n_rows": 20, "n_train": 20, "n_test": 0, "n_classes": 2, "n_features": 2, "nnz": 40, "empty_rows": 0, "weights": null, "labels_per_row": null, "classes": [{"label": "flat", "train": 10, "test": 0}, {"label": "tall", "train": 10, "test": 0}], "test_only_labels": []}','null',1795390245.53601);
CREATE TABLE hierarchies (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	format VARCHAR(16) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	n_nodes BIGINT NOT NULL, 
	n_leaves BIGINT NOT NULL, 
	levels JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
CREATE TABLE hierarchy_nodes (
	hierarchy_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	parent INTEGER NOT NULL, 
	name VARCHAR(1000) NOT NULL, 
	PRIMARY KEY (hierarchy_id, number), 
	FOREIGN KEY(hierarchy_id) REFERENCES hierarchies (id) ON DELETE CASCADE
);
CREATE TABLE idempotency (
	key_id VARCHAR(32) NOT NULL, 
	token VARCHAR(255) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	location VARCHAR(255) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (key_id, token)
);
CREATE TABLE "jobs" (
	id VARCHAR(32) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	queue VARCHAR(64) NOT NULL, 
	dataset_id VARCHAR(32), 
	request JSON NOT NULL, 
	attempt INTEGER NOT NULL, 
	losses INTEGER NOT NULL, 
	worker VARCHAR(128), 
	lease_until DOUBLE, 
	rung_at DOUBLE, 
	progress JSON, 
	result JSON, 
	error JSON, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	finished_at DOUBLE, 
	hierarchy_id VARCHAR(32), 
	PRIMARY KEY (id), 
	CONSTRAINT jobs_hierarchy_id_fkey FOREIGN KEY(hierarchy_id) REFERENCES hierarchies (id) ON DELETE SET NULL, 
	FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE SET NULL
);
INSERT INTO "jobs" VALUES('18ea81de313f6d55bcb0c1015fc63be7','import','succeeded','general','18ea81de2dcef87f3d380ea13bd27fed','{"kind": "import", "format": "svmlight", "label_column": "label", "weight_column": null, "label_separator": null}',1,0,'worker:1',NULL,NULL,'{"epoch": 0, "fraction": 0.5, "phase": "saving"}','{"dataset": "18ea81de2dcef87f3d380ea13bd27fed"}','null',1.79539019277101755144e+09,1.79539019318501663212e+09,1.7953902443049967289e+09,NULL);
INSERT INTO "jobs" VALUES('18ea81ea3d07afa1f7339f068a9b3c6c','train','succeeded','general','18ea81de2dcef87f3d380ea13bd27fed','{"kind": "train", "dataset": "letters", "hierarchy": null, "solver": "weston_watkins", "params": {}, "model": "letters", "seed": 0, "threads": 1, "test_fraction": 0.2, "unseen_labels": "refuse", "missing_parents": "add", "text": {"min_df": 2, "max_df": 1.0, "ngram_max": 1, "max_features": null, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null}',1,0,'worker:1',NULL,NULL,'{"epoch": 2, "fraction": 1.0, "phase": "saving", "point": 0, "eta_seconds": null, "gap": 1.0669116788053514e-05}','{"model": "letters", "version": 1, "versions": [1]}','null',1.79539024450700736039e+09,1.79539024459898018844e+09,1.79539024488898062703e+09,NULL);
INSERT INTO "jobs" VALUES('18ea81ea5afc43838fcedb66aaa056c0','import','succeeded','general','18ea81ea5a78dfe3a9c1b431e9757dd1','{"kind": "import", "format": "jsonl", "label_column": "label", "weight_column": null, "label_separator": null}',1,0,'worker:1',NULL,NULL,'{"epoch": 0, "fraction": 0.5, "phase": "saving"}','{"dataset": "18ea81ea5a78dfe3a9c1b431e9757dd1"}','null',1.79539024501201367376e+09,1.79539024504701638217e+09,1.79539024509899759296e+09,NULL);
INSERT INTO "jobs" VALUES('18ea81ea62d554a7f109a45de4f94f04','train','succeeded','general','18ea81ea5a78dfe3a9c1b431e9757dd1','{"kind": "train", "dataset": "foods", "hierarchy": null, "solver": "weston_watkins", "params": {}, "model": "foods", "seed": 0, "threads": 1, "test_fraction": 0.2, "unseen_labels": "refuse", "missing_parents": "add", "text": {"min_df": 2, "max_df": 1.0, "ngram_max": 1, "max_features": null, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null}',1,0,'worker:1',NULL,NULL,'{"epoch": 2, "fraction": 1.0, "phase": "saving", "point": 0, "eta_seconds": null, "gap": 8.638969766276074e-06}','{"model": "foods", "version": 1, "versions": [1]}','null',1.79539024514100098613e+09,1.79539024519901728631e+09,1.79539024549798965457e+09,NULL);
INSERT INTO "jobs" VALUES('18ea81ea7a7041670ea01a25e51117af','import','succeeded','general','18ea81ea7a4b8fa58f83f075049076f9','{"kind": "import", "format": "csv", "label_column": "label", "weight_column": null, "label_separator": null}',1,0,'worker:1',NULL,NULL,'{"epoch": 0, "fraction": 0.5, "phase": "saving"}','{"dataset": "18ea81ea7a4b8fa58f83f075049076f9"}','null',1.79539024553701591488e+09,1.79539024555001115799e+09,1.79539025736101126671e+09,NULL);
INSERT INTO "jobs" VALUES('18ea81ed3d52db82362b13ae3d005d1c','train','succeeded','general','18ea81ea7a4b8fa58f83f075049076f9','{"kind": "train", "dataset": "shapes", "hierarchy": null, "solver": "weston_watkins", "params": {}, "model": "shapes", "seed": 0, "threads": 1, "test_fraction": 0.2, "unseen_labels": "refuse", "missing_parents": "add", "text": {"min_df": 2, "max_df": 1.0, "ngram_max": 1, "max_features": null, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null}',1,0,'worker:1',NULL,NULL,'{"epoch": 2, "fraction": 1.0, "phase": "saving", "point": 0, "eta_seconds": null, "gap": 0.00024383981129314758}','{"model": "shapes", "version": 1, "versions": [1]}','null',1.79539025739701986307e+09,1.79539025745201849936e+09,1.79539025788999652864e+09,NULL);
CREATE TABLE keys (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	revoked_at DOUBLE, 
	PRIMARY KEY (id), 
	UNIQUE (digest), 
	UNIQUE (name)
);
CREATE TABLE metrics (
	version_id VARCHAR(32) NOT NULL, 
	part VARCHAR(16) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	value DOUBLE NOT NULL, 
	PRIMARY KEY (version_id, part, name), 
	FOREIGN KEY(version_id) REFERENCES model_versions (id) ON DELETE CASCADE
);
INSERT INTO "metrics" VALUES('18ea81ea535f50263f67a4bb779f2ce1','train','error',0.0);
INSERT INTO "metrics" VALUES('18ea81ea535f50263f67a4bb779f2ce1','train','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ea535f50263f67a4bb779f2ce1','train','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ea535f50263f67a4bb779f2ce1','train','majority_error',0.631578947368421);
INSERT INTO "metrics" VALUES('18ea81ea535f50263f67a4bb779f2ce1','test','error',0.0);
INSERT INTO "metrics" VALUES('18ea81ea535f50263f67a4bb779f2ce1','test','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ea535f50263f67a4bb779f2ce1','test','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ea535f50263f67a4bb779f2ce1','test','majority_error',0.8);
INSERT INTO "metrics" VALUES('18ea81ea77bbe7651d269c952868e2df','train','error',0.0);
INSERT INTO "metrics" VALUES('18ea81ea77bbe7651d269c952868e2df','train','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ea77bbe7651d269c952868e2df','train','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ea77bbe7651d269c952868e2df','train','majority_error',0.631578947368421);
INSERT INTO "metrics" VALUES('18ea81ea77bbe7651d269c952868e2df','test','error',0.0);
INSERT INTO "metrics" VALUES('18ea81ea77bbe7651d269c952868e2df','test','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ea77bbe7651d269c952868e2df','test','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ea77bbe7651d269c952868e2df','test','majority_error',0.8);
INSERT INTO "metrics" VALUES('18ea81ed5a612c3283ffbc4733d43645','train','error',0.0);
INSERT INTO "metrics" VALUES('18ea81ed5a612c3283ffbc4733d43645','train','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ed5a612c3283ffbc4733d43645','train','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ed5a612c3283ffbc4733d43645','train','majority_error',0.5);
INSERT INTO "metrics" VALUES('18ea81ed5a612c3283ffbc4733d43645','test','error',0.0);
INSERT INTO "metrics" VALUES('18ea81ed5a612c3283ffbc4733d43645','test','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ed5a612c3283ffbc4733d43645','test','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18ea81ed5a612c3283ffbc4733d43645','test','majority_error',0.5);
CREATE TABLE "model_versions" (
	id VARCHAR(32) NOT NULL, 
	model_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	job_id VARCHAR(32) NOT NULL, 
	dataset_id VARCHAR(32), 
	dataset_sha256 VARCHAR(64) NOT NULL, 
	solver VARCHAR(64) NOT NULL, 
	params JSON NOT NULL, 
	seed BIGINT NOT NULL, 
	request JSON NOT NULL, 
	code_version VARCHAR(32) NOT NULL, 
	n_classes BIGINT NOT NULL, 
	n_features BIGINT NOT NULL, 
	n_train BIGINT NOT NULL, 
	epochs INTEGER NOT NULL, 
	converged BOOLEAN NOT NULL, 
	primal DOUBLE, 
	dual DOUBLE, 
	gap DOUBLE, 
	violation DOUBLE, 
	seconds DOUBLE NOT NULL, 
	path VARCHAR(255) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	point INTEGER DEFAULT '0' NOT NULL, 
	report JSON, 
	hierarchy_id VARCHAR(32), 
	hierarchy_sha256 VARCHAR(64), 
	PRIMARY KEY (id), 
	CONSTRAINT model_versions_job_id_point_key UNIQUE (job_id, point), 
	CONSTRAINT model_versions_model_id_number_key UNIQUE (model_id, number), 
	CONSTRAINT model_versions_hierarchy_id_fkey FOREIGN KEY(hierarchy_id) REFERENCES hierarchies (id) ON DELETE SET NULL, 
	FOREIGN KEY(model_id) REFERENCES models (id) ON DELETE CASCADE, 
	FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE SET NULL
);
INSERT INTO "model_versions" VALUES('18ea81ea535f50263f67a4bb779f2ce1','18ea81ea52cfaeb6c19284914fc47bdc',1,'18ea81ea3d07afa1f7339f068a9b3c6c','18ea81de2dcef87f3d380ea13bd27fed','26d8319d38afbf5d4b578bcb6dc447ce8ba3a7b1d003caebccd1ab26961a0564','weston_watkins','{"C": 1.0, "bias": 0.0, "memory_mb": null, "class_weight": null, "tol": 0.01, "max_epochs": 1000, "dtype": "auto"}',0,'{"kind": "train", "dataset": "letters", "hierarchy": null, "solver": "weston_watkins", "params": {}, "model": "letters", "seed": 0, "threads": 1, "test_fraction": 0.2, "unseen_labels": "refuse", "missing_parents": "add", "text": {"min_df": 2, "max_df": 1.0, "ngram_max": 1, "max_features": null, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null}','0.1.0',3,6,19,2,1,8.00008606910769692888e-01,8.0000007152551111389e-01,1.06691167880535142361e-05,2.98023224154508881156e-08,1.11900566999793227296e-01,'models/18ea81ea3d07afa1f7339f068a9b3c6c.1','d378d03a12aab29bbd8e3687e5e39ce8ba5e6c7032a5e110e2d063e20433f421',1722,1.79539024488499760626e+09,0,'{"nonzero_weights": 1.0, "nonzero_duals": 0.15789473684210525}',NULL,NULL);
INSERT INTO "model_versions" VALUES('18ea81ea77bbe7651d269c952868e2df','18ea81ea77a37bdb589a960a57a74d3d',1,'18ea81ea62d554a7f109a45de4f94f04','18ea81ea5a78dfe3a9c1b431e9757dd1','c2601218c027c527f50cf1d9a0415ab60f11f03649e3f38c9192a11857d8dc7e','weston_watkins','{"C": 1.0, "bias": 0.0, "memory_mb": null, "class_weight": null, "tol": 0.01, "max_epochs": 1000, "dtype": "auto"}',0,'{"kind": "train", "dataset": "foods", "hierarchy": null, "solver": "weston_watkins", "params": {}, "model": "foods", "seed": 0, "threads": 1, "test_fraction": 0.2, "unseen_labels": "refuse", "missing_parents": "add", "text": {"min_df": 2, "max_df": 1.0, "ngram_max": 1, "max_features": null, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null}','0.1.0',3,9,19,2,1,1.00000861105650074023e+00,9.99999972012343807392e-01,8.63896976627607388922e-06,2.98023223876953191162e-08,7.25459499972203047946e-03,'models/18ea81ea62d554a7f109a45de4f94f04.1','9a72f969851a8e68f7e59fab505c1c62356d3fd0b2a79fd104e258acae0bb1e7',2679,1.79539024549199485777e+09,0,'{"nonzero_weights": 1.0, "nonzero_duals": 0.15789473684210525}',NULL,NULL);
INSERT INTO "model_versions" VALUES('18ea81ed5a612c3283ffbc4733d43645','18ea81ed5a4c69a7ebe47fc99625dfb7',1,'18ea81ed3d52db82362b13ae3d005d1c','18ea81ea7a4b8fa58f83f075049076f9','9aac66c5ef10c7c29c8d8bd38914ee95d3eb89f8c4e6c3932d2eb329c62a79c6','weston_watkins','{"C": 1.0, "bias": 0.0, "memory_mb": null, "class_weight": null, "tol": 0.01, "max_epochs": 1000, "dtype": "auto"}',0,'{"kind": "train", "dataset": "shapes", "hierarchy": null, "solver": "weston_watkins", "params": {}, "model": "shapes", "seed": 0, "threads": 1, "test_fraction": 0.2, "unseen_labels": "refuse", "missing_parents": "add", "text": {"min_df": 2, "max_df": 1.0, "ngram_max": 1, "max_features": null, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null}','0.1.0',2,2,16,2,1,0.00781440595164902,7.81250048837640181931e-03,2.43839811293147578968e-04,6.4969062805177814129e-06,1.35270900000250549055e-03,'models/18ea81ed3d52db82362b13ae3d005d1c.1','68141f8a146dc9c621d5435da02d9f4157b2eee55572fd59b94dfd83829c12ac',2073,1.79539025788400173188e+09,0,'{"nonzero_weights": 1.0, "nonzero_duals": 0.5}',NULL,NULL);
CREATE TABLE models (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "models" VALUES('18ea81ea52cfaeb6c19284914fc47bdc','letters',1.79539024487300825114e+09);
INSERT INTO "models" VALUES('18ea81ea77a37bdb589a960a57a74d3d','foods',1.79539024548998332026e+09);
INSERT INTO "models" VALUES('18ea81ed5a4c69a7ebe47fc99625dfb7','shapes',1.79539025788299584389e+09);
CREATE TABLE slots (
	queue VARCHAR(64) NOT NULL, 
	number INTEGER NOT NULL, 
	job_id VARCHAR(32), 
	attempt INTEGER, 
	rank INTEGER, 
	size INTEGER, 
	worker VARCHAR(128), 
	lease_until DOUBLE, 
	PRIMARY KEY (queue, number), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE SET NULL
);
CREATE TABLE steps (
	job_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	epoch INTEGER NOT NULL, 
	primal DOUBLE, 
	dual DOUBLE, 
	gap DOUBLE, 
	violation DOUBLE, 
	seconds DOUBLE NOT NULL, point INTEGER DEFAULT '0' NOT NULL, measures JSON, 
	PRIMARY KEY (job_id, number), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "steps" VALUES('18ea81ea3d07afa1f7339f068a9b3c6c',0,1,1,NULL,NULL,NULL,1.0,7.5665553999897383619e-02,0,'{}');
INSERT INTO "steps" VALUES('18ea81ea3d07afa1f7339f068a9b3c6c',1,1,2,8.00008606910769692888e-01,8.0000007152551111389e-01,1.06691167880535142361e-05,2.98023224154508881156e-08,1.11900566999793227296e-01,0,'{}');
INSERT INTO "steps" VALUES('18ea81ea62d554a7f109a45de4f94f04',0,1,1,NULL,NULL,NULL,1.0,6.60510599982444546185e-03,0,'{}');
INSERT INTO "steps" VALUES('18ea81ea62d554a7f109a45de4f94f04',1,1,2,1.00000861105650074023e+00,9.99999972012343807392e-01,8.63896976627607388922e-06,2.98023223876953191162e-08,7.25459499972203047946e-03,0,'{}');
INSERT INTO "steps" VALUES('18ea81ed3d52db82362b13ae3d005d1c',0,1,1,NULL,NULL,NULL,1.21951219439506530761e+00,1.03383100031351204961e-03,0,'{}');
INSERT INTO "steps" VALUES('18ea81ed3d52db82362b13ae3d005d1c',1,1,2,0.00781440595164902,7.81250048837640181931e-03,2.43839811293147578968e-04,6.4969062805177814129e-06,1.35270900000250549055e-03,0,'{}');
CREATE TABLE workers (
	id VARCHAR(128) NOT NULL, 
	queue VARCHAR(64) NOT NULL, 
	processes INTEGER NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX ix_hierarchy_nodes_parent ON hierarchy_nodes (hierarchy_id, parent);
CREATE INDEX ix_jobs_dataset_id ON jobs (dataset_id);
CREATE INDEX ix_jobs_state_lease ON jobs (state, lease_until);
CREATE INDEX ix_jobs_hierarchy_id ON jobs (hierarchy_id);
CREATE INDEX ix_model_versions_dataset_id ON model_versions (dataset_id);
CREATE INDEX ix_model_versions_hierarchy_id ON model_versions (hierarchy_id);
CREATE INDEX ix_slots_job_id ON slots (job_id);
COMMIT;
